"""Durations as Go writes and reads them: `1h30m`, `1.5h`, `-10s`, `0` (spec 10 §1.1)."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

_UNITS: Final = {
    "ns": Decimal("0.001"),
    "us": Decimal(1),
    "µs": Decimal(1),
    "μs": Decimal(1),
    "ms": Decimal(1_000),
    "s": Decimal(1_000_000),
    "m": Decimal(60_000_000),
    "h": Decimal(3_600_000_000),
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LARGEST: Final = (1 << 63) // 1000


class DurationError(ValueError):
    """A text is no duration; the message quotes it."""


def parse_duration(text: str) -> timedelta:
    """`1h30m` → 90 minutes. Whatever is smaller than a microsecond is cut off.

    Raises:
        DurationError: the text is empty, has blanks, or lacks a unit (only `0` may).
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return timedelta()
    position, microseconds = 0, Decimal(0)
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            break
        microseconds += Decimal(part[1]) * _UNITS[part[2]]
        position = part.end()
    if not rest or position < len(rest) or microseconds > _LARGEST:
        raise DurationError(f'"{text}" is no duration; write e.g. 90s, 5m or 1h30m')
    return sign * timedelta(microseconds=int(microseconds))


def format_duration(duration: timedelta) -> str:
    """90 minutes → `1h30m0s`, as Go prints it."""
    total = duration // timedelta(microseconds=1)
    if total == 0:
        return "0s"
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total < 1_000:
        return f"{sign}{total}µs"
    if total < 1_000_000:
        return f"{sign}{_trim(total, 1_000)}ms"
    minutes, rest = divmod(total, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_trim(rest, 1_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _trim(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    digits = str(unit + fraction)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
