"""Times of the day, as maintenance windows state them."""

import re
from datetime import datetime, timedelta
from typing import Final

DAY: Final = timedelta(days=1)
_FORMAT: Final = re.compile(r"[0-9]{6}[+-][0-9]{4}")


def time_of_day(text: str) -> timedelta:
    """Parse a time such as `220000+0100` into the time since midnight UTC.

    Raises:
        ValueError: It is malformed.
    """
    try:
        if _FORMAT.fullmatch(text) is None:  # strptime also accepts fewer digits, and other zones
            raise ValueError
        time = datetime.strptime(text, "%H%M%S%z")
    except ValueError as error:
        raise ValueError(f'"{text}" is not a time of the day such as 220000+0100') from error
    local = timedelta(hours=time.hour, minutes=time.minute, seconds=time.second)
    return (local - (time.utcoffset() or timedelta())) % DAY
