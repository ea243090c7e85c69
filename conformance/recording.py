"""Recording of facts: a subject's table, and random questions that are always the same."""

from collections.abc import Iterator
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from conformance.facts import Fact
from conformance.oracles import Oracle
from conformance.subjects.subject import Subject
from pergola.api.objects import JsonObject

RANDOM: Final = 300
"""How many random questions are recorded of each subject."""
_SETTINGS: Final = settings(
    max_examples=RANDOM,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


def record(subject: Subject, oracle: Oracle) -> Iterator[Fact]:
    """Yield the questions that the original answered, with its answers.

    Raises:
        OracleError: the oracle does not answer.
    """
    for question in [*subject.table(), *_random(subject)]:
        answer = oracle.ask(subject.ask, question)
        if answer.outcome != "unanswered":
            yield Fact(question, answer)


def _random(subject: Subject) -> list[JsonObject]:
    questions: list[JsonObject] = []

    @hypothesis.seed(0)
    @_SETTINGS
    @given(subject.questions())
    def draw(question: JsonObject) -> None:
        questions.append(question)

    draw()
    return questions
