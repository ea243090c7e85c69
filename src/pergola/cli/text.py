"""The only way to standard output and error: control characters are shown, and not sent."""

from datetime import datetime, timedelta
from typing import IO, TYPE_CHECKING, Final

from pergola.api.visible_text import visible
from pergola.cli.closed_pipe import end_quietly

if TYPE_CHECKING:
    from pergola.cli.safe_console import SafeConsole

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def say(
    *values: object,
    sep: str = " ",
    end: str = "\n",
    file: IO[str] | None = None,
    flush: bool = False,
) -> None:
    """Print like `print`, with control characters made visible; end quietly if nobody reads."""
    try:
        print(visible(sep.join(map(str, values))), end=end, file=file, flush=flush)
    except BrokenPipeError:
        end_quietly()


def plain_console() -> "SafeConsole":
    """Return the console of the standard output."""
    from pergola.cli.safe_console import SafeConsole

    return SafeConsole()


def in_days(duration: timedelta) -> str:
    """Return a duration in days, or in hours if it is short."""
    number, unit = (duration.days, "day") if duration.days else (duration.seconds // 3600, "hour")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def lasting(since: datetime | None, now: datetime) -> str:
    """Return how long something has lasted, such as `41 s`; empty if unknown."""
    if since is None:
        return ""
    seconds = max(int((now - since).total_seconds()), 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds} s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE} min"
    return f"{seconds // _HOUR} h" if seconds < 2 * _DAY else f"{seconds // _DAY} d"
