"""Pergola answers as the originals did, except where it was decided otherwise."""

import orjson
import pytest

from conformance import facts
from conformance.comparison import MOST, Decisions
from conformance.subjects import SUBJECTS
from conformance.subjects.subject import Subject, cases

ENOUGH = 200
MOST_COMPARED = 1_000


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_the_answers_are_those_of_the_original(subject: Subject) -> None:
    decisions = Decisions.read()
    recorded = [*facts.read(subject)]
    undecided = [
        (fact.question, differing)
        for fact in recorded
        if (
            differing := decisions.undecided(
                subject.name, subject.compare(fact.question, fact.answer)
            )
        )
    ]

    assert undecided == []
    assert sum(cases(fact.answer) for fact in recorded) >= ENOUGH
    assert decisions.never_met([subject.name]) == [], "no recorded case needs these lines"


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_comparison_leaves_question_and_answer_as_they_are(subject: Subject) -> None:
    compared = 0
    for fact in facts.read(subject):
        compared += cases(fact.answer)
        if compared > MOST_COMPARED:
            break
        before = orjson.dumps((fact.question, fact.answer.value))
        list(subject.compare(fact.question, fact.answer))
        assert orjson.dumps((fact.question, fact.answer.value)) == before


def test_every_decided_difference_is_about_a_subject() -> None:
    names = {subject.name for subject in SUBJECTS}

    assert [each for each in Decisions.read().decided if each.subject not in names] == []
    assert len(Decisions.read().listed) <= MOST
