"""Points in time in live objects."""

import re
from datetime import datetime
from typing import Final

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = r"\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"
_RFC3339: Final = re.compile(f"{_DATE}T{_TIME}", re.ASCII)


def read_time(value: object) -> datetime | None:
    """Parse an RFC 3339 time, aware and in whole microseconds; return None otherwise."""
    if not isinstance(value, str) or _RFC3339.fullmatch(value) is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:  # the right format, but no such day or hour
        return None
