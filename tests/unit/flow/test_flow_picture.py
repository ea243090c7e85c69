"""Pictures of graphs: text, DOT and Mermaid."""

import asyncio
from collections.abc import Callable

import pytest

from pergola.flow.errors import Cycle, FlowFailed
from pergola.flow.graph import Graph
from pergola.flow.picture import Fate, Note, dot, ended, mermaid, skipped, tree
from pergola.flow.retry import Retry
from pergola.flow.run import run


async def nothing() -> None:
    """Do nothing."""


def infrastructure() -> Graph:
    graph = Graph("infrastructure")
    graph.add("DHCP options", nothing)
    graph.add("VPC", nothing, after=["DHCP options"])
    graph.add("internet gateway", nothing, after=["VPC"])
    graph.add("default SG", nothing, after=["VPC"])
    graph.add("main route table", nothing, after=["VPC", "default SG", "internet gateway"])
    graph.add("EFS", nothing, skip="EFS is not enabled")
    return graph


NOTES = {
    "DHCP options": Note(Fate.KEEP, "dopt-1"),
    "VPC": Note(Fate.CREATE, "10.250.0.0/16"),
    "EFS": Note(Fate.SKIP, "EFS is not enabled"),
}


def test_a_tree_has_each_task_once_below_its_last_dependency() -> None:
    pictured = tree(infrastructure(), NOTES)
    assert pictured.splitlines() == [
        "infrastructure",
        "├── DHCP options                  keep: dopt-1",
        "│   └── VPC                       would create: 10.250.0.0/16",
        "│       ├── internet gateway",
        "│       └── default SG",
        "│           └── main route table  (also after internet gateway)",
        "└── EFS                           skip: EFS is not enabled",
    ]


def test_dot_leaves_out_edges_that_follow_from_others() -> None:
    graph = Graph("demo")
    graph.add("a", nothing)
    graph.add("b", nothing, after=["a"])
    graph.add("c", nothing, after=["a", "b"])
    assert dot(graph, {"c": Note(Fate.FAILED, "no quota")}) == (
        'digraph "demo" {\n'
        "  rankdir=LR\n"
        '  node [shape=box style="filled,rounded" fillcolor="#ffffff"]\n'
        '  "a" [label="a"]\n'
        '  "b" [label="b"]\n'
        '  "c" [label="c\\nfailed: no quota" fillcolor="#ffa8a8"]\n'
        '  "a" -> "b"\n'
        '  "b" -> "c"\n'
        "}\n"
    )


def test_dot_escapes_characters_that_would_end_a_label() -> None:
    graph = Graph('"x"')
    graph.add('say "hi" \\', nothing)
    lines = dot(graph).splitlines()
    assert lines[0] == 'digraph "\\"x\\"" {'
    assert lines[3] == '  "say \\"hi\\" \\\\" [label="say \\"hi\\" \\\\"]'


def test_mermaid_numbers_the_tasks_and_colours_those_with_a_note() -> None:
    graph = Graph("demo")
    graph.add("a", nothing)
    graph.add("b", nothing, after=["a"])
    assert mermaid(graph, {"b": Note(Fate.SKIP, "off")}) == (
        "flowchart LR\n"
        '  t0["a"]\n'
        '  t1["b<br/>skip: off"]\n'
        "  style t1 fill:#f1f3f5,color:#212529\n"
        "  t0 --> t1\n"
    )


def test_mermaid_escapes_characters_that_would_end_a_label() -> None:
    graph = Graph("demo")
    graph.add('<b> "#1" & more\nlines', nothing)
    assert mermaid(graph).splitlines()[1] == (
        '  t0["&lt;b&gt; &quot;&#35;1&quot; &amp; more lines"]'
    )


def test_skipped_tasks_have_their_reason_even_before_a_run() -> None:
    graph = Graph("demo")
    graph.add("a", nothing, skip="off")
    graph.add("b", nothing, skip=lambda: "not in state")
    graph.add("c", nothing, skip=lambda: None)
    assert skipped(graph) == {"a": Note(Fate.SKIP, "off"), "b": Note(Fate.SKIP, "not in state")}


@pytest.mark.looptime(start=0)
async def test_a_run_can_be_drawn_afterwards() -> None:
    calls = 0

    async def second_time() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("reset")

    async def slow() -> None:
        await asyncio.sleep(90)

    graph = Graph("demo")
    graph.add("a", slow)
    graph.add("b", second_time, retry=Retry.every(1, 2))
    graph.add("c", slow, after=["b"], timeout=30)
    graph.add("d", nothing, after=["c"])
    graph.add("e", nothing, skip="off")
    with pytest.raises(FlowFailed) as caught:
        await run(graph)
    assert ended(caught.value.result) == {
        "a": Note(Fate.DONE, "90.0 s"),
        "b": Note(Fate.DONE, "1.0 s in 2 attempts"),
        "c": Note(Fate.FAILED, "it took longer than 30 s"),
        "d": Note(Fate.WAITING),
        "e": Note(Fate.SKIP, "off"),
    }


@pytest.mark.parametrize("draw", [tree, dot, mermaid])
def test_an_empty_graph_can_be_drawn(draw: Callable[[Graph], str]) -> None:
    assert draw(Graph("empty")).endswith("\n")


@pytest.mark.parametrize("draw", [tree, dot, mermaid])
def test_a_cycle_is_not_drawn(draw: Callable[[Graph], str]) -> None:
    graph = Graph("demo")
    graph.add("a", nothing, after=["b"])
    graph.add("b", nothing, after=["a"])
    with pytest.raises(Cycle):
        draw(graph)


def test_a_long_chain_can_be_drawn() -> None:
    graph = Graph("demo")
    before: list[str] = []
    for number in range(400):
        graph.add(str(number), nothing, after=before)
        before = [str(number)]
    assert len(tree(graph).splitlines()) == 401
