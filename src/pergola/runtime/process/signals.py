"""Signals: work until SIGTERM or SIGINT, then stop gracefully."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Final

from pergola.runtime.logging import describe, get_logger

log = get_logger("process")

GRACE_SECONDS: Final = 5.0


async def work_until_signalled(
    work: Coroutine[None, None, None], *, grace: float = GRACE_SECONDS
) -> None:
    """Run the work until SIGTERM or SIGINT; then cancel it, and give it `grace` seconds to end.

    An error after the signal is only logged.

    Raises:
        BaseException: the work raised it; of a group, only the first error.
    """
    with ended_by_signals() as ended:
        working = asyncio.create_task(work)
        ending = asyncio.create_task(ended.wait())
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not working.done():
            log.info("stopping")
            working.cancel()
            await asyncio.wait({working}, timeout=grace)
            _report(working, grace)
            return
        try:
            working.result()
        except BaseExceptionGroup as errors:
            raise _innermost(errors) from None


@contextmanager
def ended_by_signals() -> Iterator[asyncio.Event]:
    """Provide an event that SIGTERM and SIGINT set."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        yield ended
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _report(stopping: "asyncio.Task[None]", grace: float) -> None:
    if not stopping.done():
        log.warning("not stopped in time", seconds=grace)
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.error("failed while stopping", error=describe(error))


def _innermost(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _innermost(first) if isinstance(first, BaseExceptionGroup) else first
