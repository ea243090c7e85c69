"""A limit on how often an object is repaired, so that two writers cannot fight at full speed.

Drift is repaired as soon as the watch shows it (spec 10 B9). If another writer keeps reverting or
deleting the object, each repair would trigger the other: after a burst, repairs are spaced.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pergola.runtime.clock import Clock, SystemClock

BURST: Final = 5
INTERVAL_SECONDS: Final = 10.0
_KNOWN_AT_MOST: Final = 1000


@dataclass(slots=True)
class _Repairs:
    """The recent repairs of one object.

    Attributes:
        full_at: when it may be repaired `BURST` times in a row again.
        since: the time of the first of these repairs.
        remark: about the fight; empty before a repair was held back.
        is_current: whether no repair followed the remark.
    """

    full_at: float
    since: datetime
    remark: str = ""
    is_current: bool = False


class FightLimit:
    """A token bucket for each object: `BURST` repairs at once, then one every ten seconds.

    Args:
        now: a monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float], clock: Clock | None = None) -> None:
        self._now = now
        self._clock = clock or SystemClock()
        self._repairs: dict[str, _Repairs] = {}

    def delay(self, object_key: str) -> float:
        """Return the seconds until the object may be repaired again."""
        recent = self._repairs.get(object_key)
        if recent is None:
            return 0.0
        wait = recent.full_at + INTERVAL_SECONDS - self._now() - INTERVAL_SECONDS * BURST
        return max(0.0, wait)

    def repaired(self, object_key: str) -> None:
        """Count a repair."""
        now = self._now()
        recent = self._recent(object_key) or _Repairs(now, self._clock.now())
        recent.full_at += INTERVAL_SECONDS
        recent.is_current = False
        self._repairs[object_key] = recent
        if len(self._repairs) > _KNOWN_AT_MOST:
            self._repairs = {key: r for key, r in self._repairs.items() if r.full_at > now}

    def since(self, object_key: str) -> datetime:
        """Return the time of the first repair in the current series."""
        recent = self._recent(object_key)
        return recent.since if recent else self._clock.now()

    def needs_remark(self, object_key: str) -> bool:
        """Return whether the latest repair has no remark about its fight yet."""
        recent = self._recent(object_key)
        return recent is not None and not recent.is_current

    def note(self, object_key: str, remark: str) -> None:
        """Store a remark about a fight, for as long as repairs are spaced."""
        recent = self._recent(object_key)
        if recent is not None:
            recent.remark, recent.is_current = remark, True

    def remark(self, object_key: str) -> str:
        """Return the remark about a fight that goes on; empty without one."""
        recent = self._recent(object_key)
        return recent.remark if recent else ""

    def ends_in(self, object_key: str) -> float:
        """Return the seconds until a fight is over, unless another repair follows."""
        recent = self._recent(object_key)
        return recent.full_at - self._now() if recent else 0.0

    def end(self, object_key: str) -> None:
        """Forget the repairs of an object that is left to others."""
        self._repairs.pop(object_key, None)

    def _recent(self, object_key: str) -> _Repairs | None:
        recent = self._repairs.get(object_key)
        if recent is None or recent.full_at > self._now():
            return recent
        del self._repairs[object_key]
        return None
