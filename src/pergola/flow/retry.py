"""Retries of failed tasks, and the classification of their errors."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from pergola.runtime.failures import leaves


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The meaning of an error for the task that raised it.

    Attributes:
        may_pass: whether a retry may succeed without any change.
        after: the wait in seconds that the other side requires, for example when it throttles; the
            next attempt is not earlier, and without one, the caller of the flow may wait that long.
        codes: the error codes, such as `ERR_INFRA_QUOTA_EXCEEDED`.
    """

    may_pass: bool = True
    after: float | None = None
    codes: tuple[str, ...] = ()


Diagnose = Callable[[Exception], Diagnosis]
"""Judges an exception of a task."""


def may_pass(error: Exception) -> Diagnosis:
    """Classify every error as one that may pass: the default."""
    del error
    return Diagnosis()


def diagnose_all(diagnose: Diagnose, error: Exception) -> Diagnosis:
    """Diagnose an error; a group of errors may pass only if each of them may."""
    found = [diagnose(leaf) for leaf in leaves(error)]
    asked = [each.after for each in found if each.after is not None]
    return Diagnosis(
        may_pass=all(each.may_pass for each in found),
        after=max(asked) if asked else None,
        codes=tuple(dict.fromkeys(code for each in found for code in each.codes)),
    )


@dataclass(frozen=True, slots=True)
class Retry:
    """The number of attempts at a task, and the waits between them.

    Attributes:
        attempts: the total number; None for as many as the task's timeout allows.
        first_seconds: the wait after the first failure.
        factor: the factor between consecutive waits.
        longest_seconds: the maximum wait, unless the other side requires more.
        jitter: the maximum share of a wait that is randomly subtracted.
    """

    attempts: int | None = None
    first_seconds: float = 1.0
    factor: float = 2.0
    longest_seconds: float = 30.0
    jitter: float = 0.5

    @classmethod
    def every(cls, seconds: float, attempts: int | None = None) -> Self:
        """Return retries with the same wait after each failure."""
        return cls(attempts, seconds, factor=1.0, longest_seconds=seconds, jitter=0.0)

    def wait(self, failures: int, asked: float | None, source: random.Random) -> float | None:
        """Return the seconds until the next attempt; None if there is none.

        Args:
            failures: the number of failed attempts, at least 1.
            asked: the wait in seconds that the other side requires.
        """
        if self.attempts is not None and failures >= self.attempts:
            return None
        # The exponent is bounded, so that a task that fails for days does not cause an overflow.
        own = self.first_seconds * self.factor ** min(failures - 1, 60)
        own = min(own, self.longest_seconds) * source.uniform(1.0 - self.jitter, 1.0)
        return max(own, asked or 0.0)


ONCE: Final = Retry(attempts=1)
"""A single attempt."""
