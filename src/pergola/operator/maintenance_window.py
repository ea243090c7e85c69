"""The daily maintenance window of a Garden."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

DAY: Final = timedelta(days=1)


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


def time_of_day(text: str) -> timedelta:
    """Parse a time such as `220000+0100` into the time since midnight UTC.

    Raises:
        ValueError: It is malformed.
    """
    try:
        time = datetime.strptime(text, "%H%M%S%z")
    except ValueError as error:
        raise ValueError(f'"{text}" is not a time of the day such as 220000+0100') from error
    local = timedelta(hours=time.hour, minutes=time.minute, seconds=time.second)
    return (local - (time.utcoffset() or timedelta())) % DAY
