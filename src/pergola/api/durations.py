"""Durations as Kubernetes and Gardener write them: Go's syntax, `1h30m` (spec 10 §1.1).

A Go duration counts nanoseconds, a `timedelta` microseconds. Fractions of a microsecond are rounded
away from zero, because zero often means "off": `1ns` must not disable anything.
"""

import re
from datetime import timedelta
from typing import Final

_MICROSECOND: Final = 1_000
_SECOND: Final = 1_000_000_000
_NANOSECONDS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "µs": _MICROSECOND,  # the micro sign
    "\u03bcs": _MICROSECOND,  # the Greek letter
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_UNITS: Final = "h, m, s, ms, us, ns"
_LONGEST: Final = 2**63  # nanoseconds, as Go counts them in 64 bits: about 292 years
_TOO_LONG: Final = "it is longer than 292 years"
_PART: Final = re.compile(r"(?P<whole>[0-9]*)(?P<point>\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")


class DurationError(ValueError):
    """A text that is not a Go duration; the message gives the reason."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(f'invalid duration "{text}": {problem}')


def parse_duration(text: str) -> timedelta:
    """Parse a Go duration: `1h30m`, `1.5h`, `-1h`, or a bare `0`.

    Raises:
        DurationError: for anything else, including surrounding blanks and more than 292 years.
    """
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return timedelta()
    if not unsigned:
        raise DurationError(text, "it is empty; write for example 1h30m or 0")
    nanoseconds = _nanoseconds(text, unsigned)
    microseconds = -(-nanoseconds // _MICROSECOND)
    return timedelta(microseconds=-microseconds if text[0] == "-" else microseconds)


def format_duration(duration: timedelta) -> str:
    """Format a duration as Go does: `1h0m0s`, `1m30s`, `1.5s`, `100ms`, `0s`."""
    microseconds = duration // timedelta(microseconds=1)
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if microseconds == 0:
        return "0s"
    if microseconds < 1_000:
        return f"{sign}{microseconds}µs"
    if microseconds < 1_000_000:
        return f"{sign}{_decimal(microseconds, 3)}ms"
    minutes, microseconds = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    larger = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{larger}{_decimal(microseconds, 6)}s"


def _nanoseconds(text: str, unsigned: str) -> int:
    total = position = 0
    while position < len(unsigned):
        part = _PART.match(unsigned, position)
        if part is None or not (part["whole"] or part["fraction"]):
            raise DurationError(text, "a number is expected before each unit")
        total += _part(text, part)
        position = part.end()
    # Go also accepts -2**63; one nanosecond is not worth another rule.
    if total >= _LONGEST:
        raise DurationError(text, _TOO_LONG)
    return total


def _part(text: str, part: re.Match[str]) -> int:
    unit = _unit(text, part["unit"])
    whole: str = part["whole"].lstrip("0")
    fraction: str = (part["fraction"] or "")[:30]
    if len(whole) > 19:
        raise DurationError(text, _TOO_LONG)
    part_of_unit = int(fraction) * unit // 10 ** len(fraction) if fraction else 0
    return int(whole or "0") * unit + part_of_unit


def _unit(text: str, name: str) -> int:
    if not name:
        raise DurationError(text, f"a number lacks its unit; the units are {_UNITS}")
    if name not in _NANOSECONDS:
        raise DurationError(text, f'unknown unit "{name}"; the units are {_UNITS}')
    return _NANOSECONDS[name]


def _decimal(value: int, places: int) -> str:
    whole, fraction = divmod(value, 10**places)
    return f"{whole}.{fraction:0{places}}".rstrip("0").rstrip(".") if fraction else str(whole)
