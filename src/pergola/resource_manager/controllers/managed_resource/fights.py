"""A limit on how often an object is repaired, so that two writers cannot fight at full speed.

Drift is repaired as soon as the watch shows it (spec 10 B9). If another writer keeps
reverting the object, each repair would trigger the other: after a burst, repairs are spaced.
"""

from collections.abc import Callable
from typing import Final

BURST: Final = 5
INTERVAL_SECONDS: Final = 10.0


class FightLimit:
    """A token bucket for each object: `BURST` repairs at once, then one every ten seconds.

    Args:
        now: a monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._full_at: dict[str, float] = {}

    def delay(self, object_key: str) -> float:
        """Return the seconds until the object may be repaired again."""
        full_at = self._full_at.get(object_key)
        if full_at is None:
            return 0.0
        wait = full_at + INTERVAL_SECONDS - self._now() - INTERVAL_SECONDS * BURST
        return max(0.0, wait)

    def repaired(self, object_key: str) -> None:
        """Count a repair."""
        now = self._now()
        self._full_at[object_key] = max(self._full_at.get(object_key, now), now) + INTERVAL_SECONDS
        if len(self._full_at) > 1000:
            self._full_at = {key: at for key, at in self._full_at.items() if at > now}
