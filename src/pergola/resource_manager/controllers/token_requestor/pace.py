"""How often a token may be issued for one Secret (spec 11, Beyond).

Without a limit, an API server that does not accept what it issues, or an owner that takes the token
out as soon as it is in, would make a hot loop.
"""

from collections import deque
from typing import Final, NamedTuple

from pergola.api.objects import Key

BURST: Final = 5


class Issued(NamedTuple):
    """The last token that this process issued for a Secret."""

    digest: bytes
    renewal: str


class Pace:
    """Remembers the last tokens of each Secret.

    Args:
        interval: seconds in which at most five tokens are issued for a Secret, and for which a
            token that was just issued is trusted more than a doubt about it.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._times: dict[Key, deque[float]] = {}
        self._last: dict[Key, Issued] = {}

    def wait(self, key: Key, now: float, *, doubted: Issued | None) -> float:
        """Seconds until a token may be issued; 0 for at once.

        Args:
            now: seconds on a clock that never goes back.
            doubted: the present token and renewal, if all that speaks against it is a doubt.
        """
        times = self._times.get(key)
        if not times:
            return 0.0
        since = times[0] if len(times) == BURST else None
        if doubted is not None and doubted == self._last[key]:
            since = times[-1]
        return 0.0 if since is None else max(0.0, since + self._interval - now)

    def issued(self, key: Key, now: float, issued: Issued) -> None:
        """Notes that a token was issued."""
        self._times.setdefault(key, deque(maxlen=BURST)).append(now)
        self._last[key] = issued

    def forget(self, key: Key) -> None:
        """The Secret is gone."""
        self._times.pop(key, None)
        self._last.pop(key, None)
