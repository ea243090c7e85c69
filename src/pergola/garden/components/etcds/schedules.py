"""Cron schedules inside and before the maintenance window (spec 20 §15.1).

The minute depends on the Garden's UID, which spreads the load of many Gardens.
"""

import zlib
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.virtual_cluster import MaintenanceTimeWindow
from pergola.api.time_of_day import DAY, time_of_day

_DAY: Final = 24 * 60
_BEFORE: Final = 75
"""Minutes before the window at which snapshots may start, so that they finish in time."""
_HOUR: Final = 60
_MINUTE: Final = timedelta(minutes=1)
_WHOLE_DAY: Final = (timedelta(), DAY - timedelta(seconds=1))


class MinuteOfDay(NamedTuple):
    """A time of the day, in UTC."""

    hour: int
    minute: int

    def cron(self, days: str = "*") -> str:
        """Return the cron expression for this time on the given days of the month."""
        return f"{self.minute} {self.hour} {days} * *"


def defragmentation(garden: Garden) -> MinuteOfDay:
    """Return the time of defragmentation, inside the maintenance window."""
    begin, length = _window(garden.spec.virtual_cluster.maintenance.time_window)
    if length == _DAY:
        return _created(garden)
    return _at(begin + _spread(garden, length))


def full_snapshot(garden: Garden) -> MinuteOfDay:
    """Return the time of full snapshots, before the maintenance window."""
    begin, length = _window(garden.spec.virtual_cluster.maintenance.time_window)
    if length == _DAY:
        return _created(garden)
    return _at(begin - _BEFORE + _spread(garden, _HOUR))


def _window(window: MaintenanceTimeWindow) -> tuple[int, int]:
    """Return the start in minutes after midnight UTC, and the length in minutes."""
    begin, end = time_of_day(window.begin), time_of_day(window.end)
    length = (end - begin) % DAY
    # A window of a whole day, such as 000000+0000 to 235959+0000 or to the same time, is always
    # open.
    minutes = _DAY if length in _WHOLE_DAY else length // _MINUTE
    return begin // _MINUTE, max(1, minutes)


def _spread(garden: Garden, minutes: int) -> int:
    return zlib.crc32(garden.uid.encode()) % minutes


def _created(garden: Garden) -> MinuteOfDay:
    created = garden.metadata.get("creationTimestamp")
    if not isinstance(created, str):
        return MinuteOfDay(0, 0)
    time = datetime.fromisoformat(created).astimezone(UTC)
    return MinuteOfDay(time.hour, time.minute)


def _at(minutes: int) -> MinuteOfDay:
    return MinuteOfDay(*divmod(minutes % _DAY, _HOUR))
