"""Clocks, injected so that tests of expiry, backoff and grace periods never sleep."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The wall clock.

    `now` is the wall clock (aware, UTC), for times that are stored and compared with the API
    server's timestamps; waiting is left to the event loop, which a test may run in virtual time.
    """

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)


class FakeClock:
    """A clock that tests move by hand."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the time that the test last set."""
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to `now`."""
        self._now = now


def monotonic() -> float:
    """Return seconds on the event loop's clock, for measuring and waiting."""
    return asyncio.get_running_loop().time()
