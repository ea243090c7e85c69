"""Operations that are being retried, for the deadlines around them.

A deadline cancels whatever runs, and the failure that was being retried would be lost with it:

    with collect_failures() as failures:
        try:
            async with asyncio.timeout(180):
                ...
        except TimeoutError:
            raise TooLate(f"it took too long; the last failure: {failures.last}") from failures.last

Whatever retries reports each failure, and needs to know nothing of deadlines:

    with retrying() as failed:
        ...
            failed(error)
            await asyncio.sleep(wait)
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_COLLECTING: Final[ContextVar[tuple["Failures", ...]]] = ContextVar("collecting", default=())


class Failures:
    """The latest failure of each operation that is being retried, or was when it was cancelled."""

    def __init__(self) -> None:
        self._by_operation: dict[object, Exception] = {}

    @property
    def last(self) -> Exception | None:
        """The most recent failure; None if nothing was being retried."""
        return next(reversed(self._by_operation.values()), None)

    def add(self, operation: object, error: Exception) -> None:
        """Record the latest failure of an operation."""
        self.discard(operation)
        self._by_operation[operation] = error

    def discard(self, operation: object) -> None:
        """Forget an operation that has ended."""
        self._by_operation.pop(operation, None)


@contextmanager
def collect_failures() -> Iterator[Failures]:
    """Collect the errors that are being retried in the block and in the tasks that it starts."""
    failures = Failures()
    token = _COLLECTING.set((*_COLLECTING.get(), failures))
    try:
        yield failures
    finally:
        _COLLECTING.reset(token)


@contextmanager
def retrying() -> Iterator[Callable[[Exception], None]]:
    """Report failures of one operation that is retried, to every deadline around it.

    Once the operation succeeds or fails for good, its failures explain nothing any more. If it is
    cancelled, they explain why it had not ended.

    Yields:
        What to call with each failure.
    """
    operation, collecting = object(), _COLLECTING.get()

    def failed(error: Exception) -> None:
        for failures in collecting:
            failures.add(operation, error)

    try:
        yield failed
    except asyncio.CancelledError:
        raise
    except BaseException:
        _discard(operation, collecting)
        raise
    else:
        _discard(operation, collecting)


def _discard(operation: object, collecting: tuple[Failures, ...]) -> None:
    for failures in collecting:
        failures.discard(operation)
