"""The rate limit of tokens for one Secret (spec 11, Beyond).

Without a limit, an API server that rejects its own tokens, or an owner that immediately removes
each token, would cause a hot loop.
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
        interval: The seconds in which a Secret gets at most five tokens, and during which a doubt
            does not replace a new token.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._times: dict[Key, deque[float]] = {}
        self._last: dict[Key, Issued] = {}

    def wait(self, key: Key, now: float, *, doubted: Issued | None) -> float:
        """Return the seconds until a token may be issued; 0 for now.

        Args:
            now: Seconds on a monotonic clock.
            doubted: The current token and renewal, if only a doubt makes a new token due.
        """
        times = self._times.get(key)
        if not times:
            return 0.0
        since = times[0] if len(times) == BURST else None
        if doubted is not None and doubted == self._last[key]:
            since = times[-1]
        return 0.0 if since is None else max(0.0, since + self._interval - now)

    def issued(self, key: Key, now: float, issued: Issued) -> None:
        """Record that a token was issued."""
        self._times.setdefault(key, deque(maxlen=BURST)).append(now)
        self._last[key] = issued

    def forget(self, key: Key) -> None:
        """Forget a deleted Secret."""
        self._times.pop(key, None)
        self._last.pop(key, None)
