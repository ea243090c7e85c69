"""A token bucket that adapts: at most AWS's limit, less while AWS throttles.

Others share the quota: controllers in the cluster, other processes, people. Throttling by AWS means
that less is left for us than documented.
"""

from typing import Final

from pergola.cloud.aws.quotas.limits import Limit
from pergola.cloud.errors import CloudError, Throttled

SHARE: Final = 0.8
"""The maximum share of a quota that a process uses."""
_FIRST: Final = 0.5
"""The initial fill level of a bucket: an earlier process may have emptied it."""
_LEAST_BURST: Final = 4.0
_SLOWER: Final = 0.5
_SLOWEST: Final = 1 / 32
_ONE_BURST_SECONDS: Final = 1.0
_RECOVERY: Final = 0.02
"""The share of the full rate that is regained in each second with successful requests."""


class Bucket:
    """The tokens of one API; times are seconds on a monotonic clock.

    Attributes:
        throttled: AWS's last refusal; None at full rate.
    """

    def __init__(self, limit: Limit, now: float) -> None:
        self.throttled: Throttled | None = None
        self._capacity = max(1.0, limit.capacity * SHARE)
        self._refill = limit.refill * SHARE
        self._factor = 1.0
        self._tokens = min(self._capacity, max(_LEAST_BURST, self._capacity * _FIRST))
        self._at = now
        self._throttled_at = -_ONE_BURST_SECONDS
        self._risen_at = now

    @property
    def rate(self) -> float:
        """The tokens that are refilled per second."""
        return self._refill * self._factor

    def wait(self, now: float) -> float:
        """Return the seconds until a token is available."""
        return max(0.0, 1.0 - self._filled(now)) / self.rate

    def take(self, now: float) -> None:
        """Take a token."""
        self._tokens = self._filled(now) - 1.0
        self._at = now

    def give_back(self) -> None:
        """Return the token of a request that was not sent."""
        self._tokens = min(self._capacity, self._tokens + 1.0)

    def learn(self, outcome: CloudError | None, now: float) -> None:
        """Halve the rate after throttling, and raise it slowly after success.

        Refusals of requests that were sent concurrently count once.
        """
        if isinstance(outcome, Throttled):
            self._slow_down(outcome, now)
        elif outcome is None and self.throttled is not None:
            self._rise(now)

    def _slow_down(self, refusal: Throttled, now: float) -> None:
        self.throttled = refusal
        if now - self._throttled_at < _ONE_BURST_SECONDS:
            return
        self._tokens, self._at = min(0.0, self._filled(now)), now
        self._factor = max(_SLOWEST, self._factor * _SLOWER)
        self._throttled_at = self._risen_at = now

    def _rise(self, now: float) -> None:
        self._tokens, self._at = self._filled(now), now
        self._factor = min(1.0, self._factor + _RECOVERY * (now - self._risen_at))
        self._risen_at = now
        if self._factor == 1.0:
            self.throttled = None

    def _filled(self, now: float) -> float:
        return min(self._capacity, self._tokens + (now - self._at) * self.rate)
