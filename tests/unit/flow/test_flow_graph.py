"""Graphs: which can be built, how others are refused, and the possible orders of tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.flow.errors import Cycle, DuplicateTask, GraphError, UnknownDependency
from pergola.flow.graph import CriticalPath, Graph
from pergola.flow.retry import Retry


async def nothing() -> None:
    """Do nothing."""


def graph(edges: dict[str, list[str]]) -> Graph:
    built = Graph("demo")
    for name, after in edges.items():
        built.add(name, nothing, after=after)
    return built


def names(edges: dict[str, list[str]]) -> list[str]:
    return [task.name for task in graph(edges).order()]


@pytest.mark.parametrize(
    ("edges", "order"),
    [
        ({}, []),
        ({"a": []}, ["a"]),
        ({"c": [], "b": [], "a": []}, ["c", "b", "a"]),
        ({"c": ["b"], "b": ["a"], "a": []}, ["a", "b", "c"]),
        ({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": []}, ["a", "c", "b", "d"]),
        ({"late": ["z"], "a": [], "z": []}, ["a", "z", "late"]),
    ],
)
def test_tasks_are_ordered_by_dependency_and_then_by_addition(
    edges: dict[str, list[str]], order: list[str]
) -> None:
    assert names(edges) == order


def test_a_dependency_is_a_task_or_a_name_and_duplicates_are_ignored() -> None:
    built = Graph("demo")
    first = built.add("first", nothing)
    second = built.add("second", nothing, after=[first, "first", first])
    assert second.after == ("first",)


def test_two_tasks_of_one_name_are_refused() -> None:
    built = graph({"ensure VPC": []})
    with pytest.raises(
        DuplicateTask, match=r'^flow "demo": the name of task "ensure VPC" is not unique$'
    ):
        built.add("ensure VPC", nothing)


def test_the_error_about_an_unknown_dependency_suggests_similar_names() -> None:
    with pytest.raises(UnknownDependency) as caught:
        names({"ensure VPC": [], "ensure subnets": ["ensure vpc"]})
    assert str(caught.value) == (
        'flow "demo": task "ensure subnets" comes after "ensure vpc", which is not in the flow; '
        'did you mean "ensure VPC"?'
    )


def test_the_error_about_an_unknown_dependency_has_no_unrelated_suggestions() -> None:
    with pytest.raises(UnknownDependency, match=r'"zzz", which is not in the flow$'):
        names({"a": ["zzz"]})


def test_an_optional_dependency_orders_tasks_only_if_it_is_in_the_graph() -> None:
    built = Graph("demo")
    built.add("routes", nothing, after_if_present=["gateway", "peering"])
    built.add("gateway", nothing)
    assert [task.name for task in built.order()] == ["gateway", "routes"]
    assert {
        name: [each.name for each in tasks] for name, tasks in built.dependencies().items()
    } == {
        "routes": ["gateway"],
        "gateway": [],
    }


def test_a_task_may_be_required_and_optional_and_counts_once() -> None:
    built = graph({"a": []})
    built.add("b", nothing, after=["a"], after_if_present=["a"])
    assert [task.name for task in built.dependencies()["b"]] == ["a"]


def test_an_optional_dependency_can_close_a_cycle() -> None:
    built = Graph("demo")
    built.add("a", nothing, after_if_present=["b"])
    built.add("b", nothing, after=["a"])
    with pytest.raises(Cycle, match='"a" after "b" after "a"'):
        built.order()


@given(st.data())
def test_only_optional_dependencies_on_absent_tasks_are_dropped(
    data: st.DataObject,
) -> None:
    names = list("abcdef")
    present = set(data.draw(st.lists(st.sampled_from(names), unique=True)))
    built = Graph("demo")
    required: dict[str, set[str]] = {}
    optional: dict[str, set[str]] = {}
    for position, name in enumerate(names):
        before = st.lists(st.sampled_from(names[:position] or ["missing"]), unique=True)
        if name in present:
            required[name], optional[name] = set(data.draw(before)), set(data.draw(before))
            built.add(name, nothing, after=required[name], after_if_present=sorted(optional[name]))
    if any(after - present for after in required.values()):
        with pytest.raises(UnknownDependency):
            built.order()
        return
    order = [task.name for task in built.order()]
    for name in present:
        for earlier in required[name] | (optional[name] & present):
            assert order.index(earlier) < order.index(name)


def test_a_task_of_another_graph_is_refused_even_if_the_name_exists() -> None:
    other = Graph("other")
    foreign = other.add("a", nothing)
    with pytest.raises(UnknownDependency, match='"b" comes after "a", which is a task of another'):
        graph({"a": []}).add("b", nothing, after=[foreign])


def test_the_error_about_a_cycle_lists_exactly_its_tasks() -> None:
    edges = {"root": [], "behind": ["a"], "a": ["root", "c"], "b": ["a"], "c": ["b"]}
    with pytest.raises(Cycle) as caught:
        names(edges)
    assert str(caught.value) == (
        'flow "demo": tasks wait for each other: "a" after "c" after "b" after "a"'
    )
    assert caught.value.tasks == ("a", "c", "b")


def test_a_task_that_comes_after_itself_is_a_cycle() -> None:
    with pytest.raises(Cycle, match=r'"a" after "a"$'):
        names({"a": ["a"]})


def test_a_task_with_endless_retries_is_refused() -> None:
    with pytest.raises(GraphError, match="give it a timeout or a number of attempts"):
        Graph("demo").add("a", nothing, retry=Retry.every(5))


@pytest.mark.parametrize(
    ("skip", "why"),
    [(None, None), ("", None), ("off", "off"), (lambda: "gone", "gone"), (lambda: None, None)],
)
def test_a_skipped_task_has_a_reason(skip: str | None, why: str | None) -> None:
    assert Graph("demo").add("a", nothing, skip=skip).why_skipped() == why


def test_the_critical_path_is_the_chain_that_takes_longest() -> None:
    built = graph({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "alone": []})
    path = built.critical_path({"a": 1, "b": 2, "c": 5, "d": 1, "alone": 6})
    assert path == CriticalPath(7, ("a", "c", "d"))
    assert built.critical_path({"alone": 8}).tasks == ("alone",)
    assert Graph("empty").critical_path({}) == CriticalPath(0.0, ())


def test_dependants_are_the_direct_successors() -> None:
    built = graph({"a": [], "b": ["a"], "c": ["b", "a"]})
    found = {name: [each.name for each in tasks] for name, tasks in built.dependants().items()}
    assert found == {"a": ["b", "c"], "b": ["c"], "c": []}


def test_a_long_chain_is_ordered_without_a_deep_stack() -> None:
    edges = {str(number): [str(number - 1)] if number else [] for number in range(3000)}
    assert names(edges) == list(edges)


@given(st.data())
def test_every_order_respects_every_edge_and_every_cycle_is_one(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 9))
    everything = [str(number) for number in range(size)]
    edges = {name: data.draw(st.lists(st.sampled_from(everything))) for name in everything}
    try:
        order = names(edges)
    except Cycle as cycle:
        following = [*cycle.tasks[1:], cycle.tasks[0]]
        for task, before in zip(cycle.tasks, following, strict=True):
            assert before in edges[task]
    else:
        assert sorted(order) == everything
        for name, after in edges.items():
            assert all(order.index(each) < order.index(name) for each in after)
