"""When a task that failed is tried again, and what its error means."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from pergola.flow.errors import leaves


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an error means for the task that raised it.

    Attributes:
        may_pass: whether trying again may help, without anybody changing anything.
        after: seconds that the other side asks to wait, as a throttled client is told to; the next
            attempt comes no earlier, and where there is none, whoever runs the flow may heed it.
        codes: what the error is classified as, such as `ERR_INFRA_QUOTA_EXCEEDED`.
    """

    may_pass: bool = True
    after: float | None = None
    codes: tuple[str, ...] = ()


Diagnose = Callable[[Exception], Diagnosis]


def may_pass(error: Exception) -> Diagnosis:
    """Every error may pass, as long as nobody says which do not."""
    del error
    return Diagnosis()


def diagnose_all(diagnose: Diagnose, error: Exception) -> Diagnosis:
    """Return what an error means; a group of errors may pass only if each of them may."""
    found = [diagnose(leaf) for leaf in leaves(error)]
    asked = [each.after for each in found if each.after is not None]
    return Diagnosis(
        may_pass=all(each.may_pass for each in found),
        after=max(asked) if asked else None,
        codes=tuple(dict.fromkeys(code for each in found for code in each.codes)),
    )


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a task is tried, and how long the waits between the attempts are.

    Attributes:
        attempts: in all; None for as long as the task's timeout allows.
        first_seconds: the wait after the first failure.
        factor: by how much each wait is longer than the one before.
        longest_seconds: no wait is longer, except where the other side asked for it.
        jitter: up to which part of a wait is left out, by chance.
    """

    attempts: int | None = None
    first_seconds: float = 1.0
    factor: float = 2.0
    longest_seconds: float = 30.0
    jitter: float = 0.5

    @classmethod
    def every(cls, seconds: float, attempts: int | None = None) -> Self:
        """Return the same wait after each failure."""
        return cls(attempts, seconds, factor=1.0, longest_seconds=seconds, jitter=0.0)

    def wait(self, failures: int, asked: float | None, source: random.Random) -> float | None:
        """Return seconds until the next attempt; None if there is none.

        Args:
            failures: how many attempts failed, at least 1.
            asked: seconds that the other side asks to wait.
        """
        if self.attempts is not None and failures >= self.attempts:
            return None
        # The exponent is bounded, so that a task that failed for days overflows nothing.
        own = self.first_seconds * self.factor ** min(failures - 1, 60)
        own = min(own, self.longest_seconds) * source.uniform(1.0 - self.jitter, 1.0)
        return max(own, asked or 0.0)


ONCE: Final = Retry(attempts=1)
"""No second attempt."""
