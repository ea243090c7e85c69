"""Failures of operations that are being retried, for the deadlines around them.

A deadline cancels the running operation, and the failure that was being retried would be lost with
it:

    with collect_failures() as failures:
        try:
            async with asyncio.timeout(180):
                ...
        except TimeoutError:
            raise TooLate(f"it took too long; the last failure: {failures.last}") from failures.last

Code that retries reports each failure, and need not know about deadlines:

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
    """The latest failure of each operation that is being retried, or was when cancelled."""

    def __init__(self) -> None:
        self._by_operation: dict[object, Exception] = {}

    @property
    def last(self) -> Exception | None:
        """The most recent failure; None if no operation was being retried."""
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
    """Collect the errors of operations retried in the block and in the tasks it starts."""
    failures = Failures()
    token = _COLLECTING.set((*_COLLECTING.get(), failures))
    try:
        yield failures
    finally:
        _COLLECTING.reset(token)


@contextmanager
def retrying() -> Iterator[Callable[[Exception], None]]:
    """Report the failures of a retried operation to every enclosing deadline.

    Once the operation succeeds or fails for good, its failures are dropped. If it is cancelled,
    they explain why it had not finished.

    Yields:
        A function to call with each failure.
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
