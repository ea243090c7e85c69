"""The search finds each difference once, in its smallest form."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import ABSENT, Decided, Decisions, Difference, differences, refusals
from conformance.oracles import GARDENER, Answer, Oracle
from conformance.reached import Reached
from conformance.recording import RANDOM, record
from conformance.search import Search, write
from conformance.strategies.changes import changed
from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.yaml import parse

SORTED = orjson.OPT_SORT_KEYS
PROGRAM = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"output": json.loads(line)["input"]}), flush=True)
"""
ECHO = [sys.executable, "-c", PROGRAM]
VALUES: SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda below: (
        st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("ab"), below, max_size=2)
    ),
)


class Echo:
    """The oracle repeats the question; Pergola changes it."""

    name = "echo"
    ask = "echo"
    title = "Echo"
    of = GARDENER
    code = ("conformance",)

    def __init__(self, ours: Callable[[JsonObject], JsonObject]) -> None:
        self._ours = ours

    def table(self) -> Iterator[JsonObject]:
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        return st.fixed_dictionaries(
            {"count": st.integers(0, 100), "names": st.lists(st.sampled_from("abc"), max_size=3)}
        )

    def meaning(self, answer: Answer) -> JsonValue:
        return answer.output

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        return differences(answer.output, self._ours(question))


def searched(ours: Callable[[JsonObject], JsonObject], *decided: Decided) -> Search:
    with Oracle(ECHO) as oracle:
        search = Search(Echo(ours), oracle, Decisions(decided))
        search.run(600.0, seed=1, most=300)
    return search


def test_equal_answers_are_counted() -> None:
    search = searched(lambda question: question)

    assert search.found == []
    assert search.cases == 300


def test_a_difference_that_does_not_repeat_is_a_finding_too() -> None:
    asked: list[JsonObject] = []

    def ours(question: JsonObject) -> JsonObject:
        asked.append(question)
        return {**question, "count": -1} if len(asked) == 1 else question

    [found] = searched(ours).found

    assert found.question == asked[0]


def test_a_difference_is_found_in_its_smallest_form_and_only_once(tmp_path: Path) -> None:
    search = searched(lambda question: {**question, "count": min(question["count"], 7)})

    (found,) = search.found
    assert found.question == {"count": 8, "names": []}
    assert found.differences == [Difference("count", "8", "7")]
    (path,) = write(Echo(lambda q: q), search.found, tmp_path)
    assert "# count: the original has 8, Pergola has 7" in path.read_text()
    assert parse(path.read_text()) == found.question


def test_differences_in_elements_of_a_list_are_one() -> None:
    search = searched(lambda q: {**q, "names": [n.replace("b", "B") for n in q["names"]]})

    assert [each.question for each in search.found] == [{"count": 0, "names": ["b"]}]


def test_a_decided_difference_is_not_found_but_counted() -> None:
    line = Decided("echo", "count", "why", 1, theirs="^8$")
    search = searched(lambda q: {**q, "count": 7 if q["count"] == 8 else q["count"]}, line)

    assert search.found == []


def test_a_crash_of_ours_is_a_difference() -> None:
    def crash(question: JsonObject) -> JsonObject:
        if question["count"] > 50:
            raise KeyError("count")
        return question

    (found,) = searched(crash).found
    assert found.question["count"] == 51
    assert found.differences[0].ours == "KeyError('count')"


@pytest.mark.parametrize(
    ("path", "line", "covered"),
    [
        ("a.b", "a.b", True),
        ("a[3].b", "a[*].b", True),
        ("a.x.b", "a.*.b", True),
        ("a.x.y.b", "a.*.b", False),
        ("a.x.y.b", "a.**", True),
        ("a.b.c", "a.b", False),
        ("axb", "a.b", False),
    ],
)
def test_a_line_covers_its_path_only(path: str, line: str, covered: bool) -> None:
    decided = Decided("s", line, "why", 1)

    assert decided.covers("s", Difference(path, "1", "2")) is covered
    assert not decided.covers("t", Difference(path, "1", "2"))


def test_a_line_may_be_about_some_values() -> None:
    decided = Decided("s", "a", "why", 1, theirs="^1$", ours=f"^{ABSENT}$")

    assert decided.covers("s", Difference("a", "1", ABSENT))
    assert not decided.covers("s", Difference("a", "2", ABSENT))
    assert not decided.covers("s", Difference("a", "1", "1"))


@given(VALUES, VALUES)
def test_values_differ_unless_they_are_equal(one: JsonValue, other: JsonValue) -> None:
    assert [*differences(one, one)] == []
    equal = orjson.dumps(one, option=SORTED) == orjson.dumps(other, option=SORTED)
    assert bool([*differences(one, other)]) is not equal


def test_two_refusals_are_equal() -> None:
    assert [*refusals([("a", "no")], [("b", "never")])] == []
    assert [*refusals([], [])] == []
    assert [*refusals([("a", "no")], [])] == [Difference("a", "no", ABSENT)]
    assert [*refusals([], [("", "no")])] == [Difference("object", ABSENT, "no")]


@given(st.data())
def test_changes_keep_types_and_what_must_stay(data: st.DataObject) -> None:
    base: JsonObject = {"kind": "A", "spec": {"a": "x", "b": 1, "c": [{"d": True}], "e": {"f": 2}}}
    found = data.draw(changed(base, keep=[("spec", "e")]))

    assert found["kind"] == "A"
    assert found["spec"]["e"] == {"f": 2}
    for key, value in base["spec"].items():
        assert type(found["spec"].get(key, value)) is type(value)
    assert base["spec"] == {"a": "x", "b": 1, "c": [{"d": True}], "e": {"f": 2}}


def test_the_same_questions_are_recorded_each_time() -> None:
    with Oracle(ECHO) as oracle:
        first, second = ([*record(Echo(lambda q: q), oracle)] for _ in range(2))

    assert first == second
    assert len(first) == RANDOM
    assert all(fact.question == fact.answer.output for fact in first)


def test_branches_are_counted_in_the_named_packages_only() -> None:
    with Reached(("conformance.comparison",)) as reached:
        assert [*differences(1, 1)] == []
    once = reached.branches()
    with Reached(("conformance.comparison",)) as reached:
        assert [*differences(1, 1)] == []
        assert [*differences([1], [2])] != []
    twice = reached.branches()

    assert 0 < once.reached < twice.reached < twice.all == once.all
