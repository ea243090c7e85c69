"""Times of the day, as maintenance windows state them."""

from datetime import datetime, timedelta
from typing import Final

DAY: Final = timedelta(days=1)


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
