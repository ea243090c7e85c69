"""The search for differences with random cases."""

import time
import traceback
from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from pathlib import Path
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from msgspec import Struct

from conformance.comparison import Decided, Decisions, Difference, without_indexes
from conformance.oracles import Answer, Oracle
from conformance.subjects.subject import Subject, cases
from pergola.api.objects import JsonObject
from pergola.kube.yaml import dump

ENOUGH: Final = 1000
"""With fewer cases, a subject counts as not judged."""
UNLIMITED: Final = settings(
    database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
"""Settings for drawing questions that are slow to answer, and have no memory of earlier runs."""
_PER_ROUND: Final = 5000
_SETTINGS: Final = settings(
    UNLIMITED, max_examples=_PER_ROUND, phases=(Phase.generate, Phase.shrink)
)


class Found(Struct, frozen=True):
    """The smallest question with an undecided difference, and the answer."""

    question: JsonObject
    answer: Answer
    differences: Sequence[Difference]

    def manifest(self, subject: Subject) -> str:
        """Return the question as YAML, with both answers as comments."""
        lines = [f"# {subject.name}", *(f"# {each}" for each in self.differences)]
        return "\n".join(lines) + f"\n{dump(self.question)}"


class Search:
    """Asks random questions about a subject.

    Attributes:
        cases: how many the original answered.
        found: undecided differences, one for each path.
    """

    def __init__(self, subject: Subject, oracle: Oracle, decisions: Decisions) -> None:
        self.cases = 0
        self.found: list[Found] = []
        self._subject = subject
        self._oracle = oracle
        self._decisions = decisions
        self._known = Decisions([])
        self._until = 0.0
        self._most: int | None = None

    def run(self, seconds: float, seed: int, most: int | None = None) -> None:
        """Search for some time; a difference that was found once is not searched for again.

        Args:
            most: the number of cases after which to stop earlier.

        Raises:
            OracleError: the oracle does not answer.
        """
        self._until = time.monotonic() + seconds
        self._most = most
        for round_ in count():
            try:
                self._round(seed + round_)
            except _Differs as error:
                self._keep(error.found)
            except hypothesis.errors.FlakyFailure as error:
                # The same question had another answer when it was asked again.
                [other, *_] = (each for each in error.exceptions if isinstance(each, _Differs))
                self._keep(other.found)
            except _Over:
                return

    def _round(self, seed: int) -> None:
        @hypothesis.seed(seed)
        @_SETTINGS
        @given(self._subject.questions())
        def ask(question: JsonObject) -> None:
            if time.monotonic() > self._until or self.cases >= (self._most or inf):
                raise _Over
            found = self._examine(question)
            if found is not None:
                raise _Differs(found)

        ask()

    def _examine(self, question: JsonObject) -> Found | None:
        answer = self._oracle.ask(self._subject.ask, question)
        if answer.outcome == "unanswered":
            return None
        self.cases += cases(answer)
        name = self._subject.name
        differing = self._decisions.undecided(name, self._compared(question, answer))
        new = self._known.undecided(name, differing)
        return Found(question, answer, new) if new else None

    def _compared(self, question: JsonObject, answer: Answer) -> list[Difference]:
        try:
            return [*self._subject.compare(question, answer)]
        except Exception as error:
            return [Difference(f"crash: {_place(error)}", "an answer", repr(error))]

    def _keep(self, found: Found) -> None:
        self.found.append(found)
        known = [*self._known.decided, *(_line(self._subject, d) for d in found.differences)]
        self._known = Decisions(known)


def write(subject: Subject, found: Sequence[Found], folder: Path) -> Iterator[Path]:
    """Write each finding as a manifest, and yield its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(found, 1):
        path = folder / f"{subject.name}-{number}.yaml"
        path.write_text(each.manifest(subject))
        yield path


def _place(error: Exception) -> str:
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{frame.f_code.co_filename}:{line}"


class _Differs(Exception):
    def __init__(self, found: Found) -> None:
        super().__init__()
        self.found = found


class _Over(BaseException):
    """Time is up. Not an Exception, for which hypothesis would look for a smaller case."""


def _line(subject: Subject, difference: Difference) -> Decided:
    return Decided(subject.name, without_indexes(difference.path), "found before", 0)
