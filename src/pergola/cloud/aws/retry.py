"""Retries of failed requests, and the pace of requests to a throttled account.

All requests to a service share one `Pace`: when one of them is throttled, all slow down. They speed
up again as requests succeed.
"""

import math
import random
from dataclasses import dataclass
from typing import Final

from pergola.cloud.errors import CloudError, Throttled

_READS: Final = ("Describe", "Get", "List", "Search", "Lookup")
_SLOWEST: Final = 5.0
_FIRST: Final = 0.1
_SLOWER: Final = 2.0
_FASTER: Final = 0.8
_NONE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Retry:
    """The number and times of a request's retries.

    Attributes:
        attempts: in all.
        first_seconds: the longest wait before the second attempt; it doubles from then on.
        total_seconds: a failed request is not repeated after so long, waits for its turn included.
            Well below the deadlines of those who call, so that they see the failure.
    """

    attempts: int = 6
    first_seconds: float = 0.5
    longest_seconds: float = 20.0
    total_seconds: float = 45.0

    def wait(
        self, error: CloudError, operation: str, attempt: int, source: random.Random
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        What may have been carried out already is only asked for again if it changes nothing.

        Args:
            attempt: the one that failed, counted from 1.
        """
        if not error.is_transient or attempt >= self.attempts:
            return None
        if error.may_have_happened and not operation.startswith(_READS):
            return None
        longest = min(self.longest_seconds, math.ldexp(self.first_seconds, attempt - 1))
        return longest * source.uniform(0.5, 1.0)


class Pace:
    """The time between two requests to a service: none until AWS throttles.

    Attributes:
        throttled: the last refusal that slowed requests down; None once they run at full speed.
    """

    def __init__(self) -> None:
        self.throttled: Throttled | None = None
        self._interval = 0.0
        self._free_at = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds for which a request would have to wait; reserves nothing."""
        return max(0.0, self._free_at - now)

    def reserve(self, now: float) -> float:
        """Return the seconds to wait before a request; the next one waits longer.

        Args:
            now: seconds on a clock that never goes back.
        """
        start = max(now, self._free_at)
        self._free_at = start + self._interval
        return start - now

    def learn(self, outcome: CloudError | None) -> None:
        """Slow down after throttling, speed up after success."""
        if isinstance(outcome, Throttled):
            self.throttled = outcome
            self._interval = min(_SLOWEST, max(_FIRST, self._interval * _SLOWER))
        elif outcome is None:
            self._interval *= _FASTER
            if self._interval < _NONE:
                self._interval = 0.0
                self.throttled = None
