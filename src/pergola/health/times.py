"""Points in time in live objects."""

import re
from datetime import UTC, datetime
from typing import Final

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = r"\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"
_RFC3339: Final = re.compile(f"{_DATE}T{_TIME}", re.ASCII)


def read_time(value: object) -> datetime | None:
    """Parse an RFC 3339 time, aware and in whole microseconds; return None otherwise."""
    if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
        return None
    try:
        time = datetime.fromisoformat(value)
        time.astimezone(UTC)  # callers compare and print times in UTC
    except (ValueError, OverflowError):  # the right format, but no such day, hour or year
        return None
    return time
