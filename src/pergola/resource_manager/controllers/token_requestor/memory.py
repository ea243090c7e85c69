"""The memory of an instance about Secrets, to save work and to limit how often it issues tokens.

Without a limit, an API server that rejects its own tokens, or an owner that immediately removes
each token, would cause a hot loop (spec 11, Beyond).
"""

from collections import deque
from datetime import datetime
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge

from pergola.api.objects import Key
from pergola.resource_manager.controllers.token_requestor.observe import TokenFacts
from pergola.runtime.clock import Clock

BURST: Final = 5
REVIEW_SECONDS: Final = 3600.0
_LABELS: Final = ("namespace", "name")


class Issued(NamedTuple):
    """A token that this process issued for a Secret, and its renew timestamp."""

    digest: bytes
    renewal: str


class Known:
    """The facts about one Secret. All times are seconds on a monotonic clock.

    Attributes:
        token: The last token that was seen or issued, which may be in the target cluster.
    """

    def __init__(self) -> None:
        self.token: TokenFacts | None = None
        self._accepted = b""
        self._accepted_at = 0.0
        self._issued: Issued | None = None
        self._issued_at: deque[float] = deque(maxlen=BURST)

    def accepted(self, digest: bytes, now: float) -> None:
        """Record that the API server accepts a token."""
        self._accepted, self._accepted_at = digest, now

    def needs_review(self, token: TokenFacts, now: float) -> bool:
        """Return whether the API server has to review a token."""
        if token.digest != self._accepted or not token.account_uid:
            return True
        return now - self._accepted_at >= REVIEW_SECONDS

    def issued(self, issued: Issued, now: float) -> None:
        """Record that a token was issued."""
        self.accepted(issued.digest, now)
        self._issued = issued
        self._issued_at.append(now)

    def wait(self, interval: float, now: float, *, doubted: Issued | None) -> float:
        """Return the seconds until a token may be issued; 0 for now.

        Args:
            interval: The seconds in which a Secret gets at most five tokens, and during which a
                doubt does not replace a new token.
            doubted: The current token and renewal, if only a doubt makes a new token due.
        """
        times = self._issued_at
        if times and doubted is not None and doubted == self._issued:
            return max(0.0, times[-1] + interval - now)
        return max(0.0, times[0] + interval - now) if len(times) == BURST else 0.0


class TokenMetrics:
    """Metrics of tokens: seconds until they expire, and failed renewals."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._expiry = Gauge(
            "pergola_token_requestor_seconds_until_expiry",
            "Seconds until the token of a Secret expires; negative once it has",
            _LABELS,
            registry=registry,
        )
        self._failures = Counter(
            "pergola_token_requestor_failed_renewals_total",
            "Renewals of the token of a Secret that failed and are retried",
            _LABELS,
            registry=registry,
        )

    def expose(self, key: Key, expires: datetime, clock: Clock) -> None:
        """Expose the remaining validity of a Secret's token."""

        def remaining() -> float:
            return (expires - clock.now()).total_seconds()

        self._expiry.labels(*key).set_function(remaining)

    def failed(self, key: Key) -> None:
        """Count a failed renewal."""
        self._failures.labels(*key).inc()

    def forget(self, key: Key) -> None:
        """Remove the series of a deleted Secret."""
        self._expiry.remove(*key)
        self._failures.remove(*key)
