"""Retries of failed requests; `quotas` has the rate of requests."""

import math
import random
from dataclasses import dataclass

from pergola.cloud.aws.quotas.limits import READS
from pergola.cloud.errors import CloudError


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
        if error.may_have_happened and not operation.startswith(READS):
            return None
        longest = min(self.longest_seconds, math.ldexp(self.first_seconds, attempt - 1))
        return longest * source.uniform(0.5, 1.0)
