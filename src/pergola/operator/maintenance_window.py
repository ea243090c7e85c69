"""The daily maintenance window of a Garden."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pergola.api.time_of_day import DAY, time_of_day


class Window(NamedTuple):
    """A daily time span.

    Attributes:
        begin: The start, after midnight UTC.
    """

    begin: timedelta
    length: timedelta

    @classmethod
    def between(cls, begin: str, end: str) -> "Window":
        """Return the window between two times of the day, such as `220000+0100`.

        Raises:
            ValueError: One of them is malformed.
        """
        first, last = time_of_day(begin), time_of_day(end)
        return cls(first, (last - first) % DAY or DAY)

    def left(self, now: datetime) -> timedelta | None:
        """Return the remaining time while it is open; None while it is closed."""
        since = self._since(now)
        return self.length - since if since < self.length else None

    def opens(self, now: datetime) -> timedelta:
        """Return the time until it opens; zero while it is open."""
        since = self._since(now)
        return timedelta() if since < self.length else DAY - since

    def _since(self, now: datetime) -> timedelta:
        """Return the time since it last opened."""
        utc = now.astimezone(UTC)
        midnight = utc.replace(hour=0, minute=0, second=0, microsecond=0)
        return (utc - midnight - self.begin) % DAY
