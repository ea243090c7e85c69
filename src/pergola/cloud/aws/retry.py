"""Retries of failed requests; `quotas` limits the rate of requests."""

import math
import random
from dataclasses import dataclass

from pergola.cloud.aws.quotas import READS
from pergola.cloud.errors import CloudError


@dataclass(frozen=True, slots=True)
class Retry:
    """The number and timing of a request's retries.

    Attributes:
        attempts: the total number.
        first_seconds: the maximum wait before the second attempt; doubled for each further one.
        total_seconds: the time after which a failed request is not repeated, including waits for
            its turn. Well below the deadlines of callers, so that they see the failure.
    """

    attempts: int = 6
    first_seconds: float = 0.5
    longest_seconds: float = 20.0
    total_seconds: float = 45.0

    def wait(
        self, error: CloudError, operation: str, attempt: int, source: random.Random
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        A request that may have been carried out already is repeated only if it is read-only.

        Args:
            attempt: the number of the failed attempt, counted from 1.
        """
        if not error.is_transient or attempt >= self.attempts:
            return None
        if error.may_have_happened and not operation.startswith(READS):
            return None
        longest = min(self.longest_seconds, math.ldexp(self.first_seconds, attempt - 1))
        return longest * source.uniform(0.5, 1.0)
