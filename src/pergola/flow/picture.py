"""Drawings of a graph with the planned or actual fate of each task: text, DOT and Mermaid.

Transitive edges are omitted: the order is the same, and a sync point of ten tasks does not draw ten
lines to everything after it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pergola.flow.graph import Graph, Task
from pergola.flow.outcome import Ended, Outcome, Result


class Fate(StrEnum):
    """The planned or actual fate of a task."""

    CREATE = "would create"
    CHANGE = "would change"
    DELETE = "would delete"
    KEEP = "keep"
    SKIP = "skip"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Note:
    """A note about one task in a drawing.

    Attributes:
        why: what is created, why it is skipped, or what failed.
        subject: of a change: what `changes` are about, which `why` has in one line.
        changes: the single changes.
    """

    fate: Fate
    why: str = ""
    subject: str = ""
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.fate}: {self.why}" if self.why else str(self.fate)


Notes = Mapping[str, Note]
"""Notes by task name; tasks may lack one."""

_FATES: Final = {
    Outcome.DONE: Fate.DONE,
    Outcome.SKIPPED: Fate.SKIP,
    Outcome.FAILED: Fate.FAILED,
    Outcome.INTERRUPTED: Fate.FAILED,
    Outcome.NOT_STARTED: Fate.WAITING,
}
_FILLS: Final = {
    Fate.CREATE: "#d3f9d8",
    Fate.CHANGE: "#fff3bf",
    Fate.DELETE: "#ffe3e3",
    Fate.KEEP: "#e7f5ff",
    Fate.SKIP: "#f1f3f5",
    Fate.WAITING: "#ffffff",
    Fate.RUNNING: "#fff3bf",
    Fate.DONE: "#d3f9d8",
    Fate.FAILED: "#ffa8a8",
}


def skipped(graph: Graph) -> dict[str, Note]:
    """Return notes about the tasks that would be skipped now.

    Calls the tasks' `skip` functions, which must therefore have no side effects.
    """
    reasons = {task.name: task.why_skipped() for task in graph}
    return {name: Note(Fate.SKIP, why) for name, why in reasons.items() if why}


def ended(result: Result) -> dict[str, Note]:
    """Return a note about the outcome of each task of a run."""
    return {name: Note(_FATES[each.outcome], _why(each)) for name, each in result.tasks.items()}


def tree(graph: Graph, notes: Notes | None = None) -> str:
    """Return each task once, below its last dependency, with the names of its other dependencies.

    Raises:
        GraphError: the graph is invalid.
    """
    rows = list(_tree_rows(graph))
    width = max((len(text) for text, _, _ in rows), default=0)
    lines = [graph.name]
    for text, task, others in rows:
        parts = [_said(notes, task.name), f"(also after {', '.join(others)})" if others else ""]
        lines.append(f"{text.ljust(width)}  {'  '.join(part for part in parts if part)}".rstrip())
    return "\n".join(lines) + "\n"


def dot(graph: Graph, notes: Notes | None = None) -> str:
    """Return the graph in Graphviz's DOT language.

    Raises:
        GraphError: the graph is wrong.
    """
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        "  rankdir=LR",
        '  node [shape=box style="filled,rounded" fillcolor="#ffffff"]',
    ]
    edges = _edges(graph)
    for task in edges:
        note = (notes or {}).get(task.name)
        label = f"{task.name}\n{note}" if note else task.name
        fill = f" fillcolor={_quoted(_FILLS[note.fate])}" if note else ""
        lines.append(f"  {_quoted(task.name)} [label={_quoted(label)}{fill}]")
    lines += [
        f"  {_quoted(before)} -> {_quoted(task.name)}"
        for task, after in edges.items()
        for before in after
    ]
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(graph: Graph, notes: Notes | None = None) -> str:
    """Return the graph in Mermaid's language, which code forges render in Markdown.

    Raises:
        GraphError: the graph is invalid.
    """
    edges = _edges(graph)
    ids = {task.name: f"t{number}" for number, task in enumerate(edges)}
    lines = ["flowchart LR"]
    for task in edges:
        note = (notes or {}).get(task.name)
        label = f"{_escaped(task.name)}<br/>{_escaped(str(note))}" if note else _escaped(task.name)
        lines.append(f'  {ids[task.name]}["{label}"]')
        if note:
            lines.append(f"  style {ids[task.name]} fill:{_FILLS[note.fate]},color:#212529")
    lines += [
        f"  {ids[before]} --> {ids[task.name]}" for task, after in edges.items() for before in after
    ]
    return "\n".join(lines) + "\n"


def _why(ended: Ended) -> str:
    if ended.outcome is Outcome.DONE:
        tries = f" in {ended.attempts} attempts" if ended.attempts > 1 else ""
        return f"{ended.seconds:.1f} s{tries}"
    return ended.why


def _said(notes: Notes | None, name: str) -> str:
    note = (notes or {}).get(name)
    return _one_line(str(note)) if note else ""


def _edges(graph: Graph) -> dict[Task, tuple[str, ...]]:
    """Return the dependencies of each task, in order, without transitive ones."""
    behind: dict[str, set[str]] = {}
    edges: dict[Task, tuple[str, ...]] = {}
    dependencies = graph.dependencies()
    for task in graph.order():
        after = tuple(each.name for each in dependencies[task.name])
        implied: set[str] = set().union(*(behind[name] for name in after))
        edges[task] = tuple(name for name in after if name not in implied)
        behind[task.name] = implied | set(after)
    return edges


def _tree_rows(graph: Graph) -> Iterator[tuple[str, Task, tuple[str, ...]]]:
    """Yield the lines of a tree: the prefix, the task, and its other dependencies."""
    edges = _edges(graph)
    depth: dict[str, int] = {}
    below: dict[str | None, list[Task]] = {}
    for task, after in edges.items():
        parent = max(after, key=lambda name: depth[name], default=None)
        depth[task.name] = 0 if parent is None else depth[parent] + 1
        below.setdefault(parent, []).append(task)
    # A stack, because a chain of tasks may exceed Python's recursion limit.
    stack = [("", task, task is below[None][-1]) for task in reversed(below.get(None, []))]
    while stack:
        indent, task, is_last = stack.pop()
        parent = max(edges[task], key=lambda name: depth[name], default=None)
        others = tuple(name for name in edges[task] if name != parent)
        yield f"{indent}{'└── ' if is_last else '├── '}{task.name}", task, others
        children = below.get(task.name, [])
        inner = indent + ("    " if is_last else "│   ")
        stack += [(inner, child, child is children[-1]) for child in reversed(children)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("#", "&#35;").replace('"', "&quot;")
    return _one_line(escaped.replace("<", "&lt;").replace(">", "&gt;"))
