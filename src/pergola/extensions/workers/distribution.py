"""Numbers of machines by zone (spec 31 §4.3)."""

import math
import re
from typing import Final

from pergola.api.objects import JsonValue

_PERCENT: Final = re.compile(r"[0-9]{1,9}%")


def share(total: int, zone: int, zones: int) -> int:
    """Return how many of `total` machines are in a zone: the first zones have one more.

    Args:
        zone: the index of the zone, from 0.
        zones: the number of zones.
    """
    return total // zones + (1 if zone < total % zones else 0)


def surge_of(value: int | str, machines: int) -> int:
    """Return how many machines may be added to a number of them; percentages are rounded up.

    Args:
        value: a number or percentage, as `share_of_either` returns it.
    """
    return value if isinstance(value, int) else -(-machines * int(value[:-1]) // 100)


def share_of_either(value: JsonValue, zone: int, zones: int, total: int) -> int | str:
    """Return the part of a number or percentage for a zone.

    A percentage stays if `total` machines divide evenly, and is weighted otherwise.

    Raises:
        ValueError: it is neither a number nor a percentage.
    """
    if isinstance(value, int):
        return share(value, zone, zones)
    if not isinstance(value, str) or _PERCENT.fullmatch(value) is None:
        raise ValueError(f'"{value}" is neither a number nor a percentage')
    percent = int(value[:-1])
    if total % zones == 0:
        return f"{percent}%"
    # In this order, because Gardener rounds the same doubles up.
    ratio = 100.0 / (float(total) / float(zones)) * float(share(total, zone, zones))
    return f"{math.ceil(ratio * float(percent) / 100.0)}%"
