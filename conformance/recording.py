"""Recording of facts: a subject's table, and random questions that are always the same."""

from collections.abc import Iterator
from typing import Final

import hypothesis
from hypothesis import Phase, given, settings

from conformance.comparison import Decisions
from conformance.facts import Fact
from conformance.oracles import Oracle
from conformance.search import UNLIMITED
from conformance.subjects.subject import Subject, cases
from pergola.api.objects import JsonObject

RANDOM: Final = 300
"""How many random questions of each subject are recorded."""
_ROUNDS: Final = 10
_SETTINGS: Final = settings(UNLIMITED, max_examples=RANDOM, phases=(Phase.generate,))


def record(subject: Subject, oracle: Oracle) -> Iterator[Fact]:
    """Yield the questions to record, with the original's answers.

    Of the random questions these are the first ones, and the first that meets each decided
    difference, so that the facts show all of them.

    Raises:
        OracleError: the oracle does not answer.
    """
    decisions = Decisions.read()
    for question in subject.table():
        for fact in _answered(subject, oracle, question):
            decisions.undecided(subject.name, subject.compare(question, fact.answer))
            yield fact
    asked = recorded = 0
    for seed in range(_ROUNDS):
        for question in _random(subject, seed):
            met = len(decisions.met)
            for fact in _answered(subject, oracle, question):
                decisions.undecided(subject.name, subject.compare(question, fact.answer))
                asked += cases(fact.answer)
                if recorded < RANDOM or len(decisions.met) > met:
                    recorded += cases(fact.answer)
                    yield fact
            is_complete = recorded >= RANDOM and not decisions.never_met([subject.name])
            if is_complete or asked >= _ROUNDS * RANDOM:
                return
        if not decisions.never_met([subject.name]):
            return


def _answered(subject: Subject, oracle: Oracle, question: JsonObject) -> Iterator[Fact]:
    answer = oracle.ask(subject.ask, question)
    if answer.outcome != "unanswered":
        yield Fact(question, answer)


def _random(subject: Subject, seed: int) -> list[JsonObject]:
    questions: list[JsonObject] = []

    @hypothesis.seed(seed)
    @_SETTINGS
    @given(subject.questions())
    def draw(question: JsonObject) -> None:
        questions.append(question)

    draw()
    return questions
