"""A plan for people: the tasks with changes, and the changes."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from pergola.api.texts import counted
from pergola.cli.garden.values import list_difference, text_difference
from pergola.operator.compare import shown
from pergola.operator.plan import Change, Fate, Field, Plan, Planned, Verb

_SIGNS: Final = {
    Verb.CREATE: ("+", "green"),
    Verb.CHANGE: ("~", "yellow"),
    Verb.DELETE: ("-", "red"),
}
_DIM: Final = "dim"


class Line(NamedTuple):
    """A line, with its style in rich."""

    text: str
    style: str = ""


def lines(plan: Plan, *, everything: bool) -> Iterator[Line]:
    """Yield a plan line by line.

    Args:
        everything: Whether to include tasks without changes.
    """
    yield from _head(plan)
    for flow, group in groupby(plan.tasks, attrgetter("flow")):
        tasks = [*group]
        if flow or everything or any(task.changes for task in tasks):
            yield Line(flow or f"Garden {plan.garden}", "bold")
            yield from _flow(tasks, everything=everything)
            yield Line("")
    yield Line(_summary(plan), "bold")


def _head(plan: Plan) -> Iterator[Line]:
    if plan.problem:
        yield Line(f"the Garden would not be reconciled: {plan.problem}", "red")
    for kind, key, field in plan.missing:
        yield Line(f"{kind} {key} ({field}) does not exist: the reconciliation would fail", "red")
    for rotation in plan.rotations:
        yield Line(f"rotation in progress: {rotation}", "yellow")


def _flow(tasks: Iterable[Planned], *, everything: bool) -> Iterator[Line]:
    quiet: list[Fate] = []
    for task in tasks:
        if everything or task.changes or task.fate is Fate.UNKNOWN:
            yield from _task(task, everything=everything)
        else:
            quiet.append(task.fate)
    skipped = quiet.count(Fate.SKIP)
    running = len(quiet) - skipped
    parts = [f"{running} change{'s' * (running == 1)} nothing"] if running else []
    if skipped:
        parts.append(f"{skipped} {'is' if skipped == 1 else 'are'} skipped")
    if parts:
        yield Line(f"  of the other tasks, {', '.join(parts)}", _DIM)


def _task(task: Planned, *, everything: bool) -> Iterator[Line]:
    is_quiet = task.fate is Fate.RUN and not everything
    why = "" if is_quiet else f": {task.fate}" + (f", {task.why}" if task.why else "")
    style = "magenta" if task.fate is Fate.UNKNOWN else ""
    yield Line(f"  {task.name}{why}", style)
    if everything and task.after:
        yield Line(f"    after {', '.join(task.after)}", _DIM)
    managed = ""
    for change in task.changes:
        if change.managed != managed and change.managed:
            yield Line(f"    in ManagedResource {change.managed}, {change.cluster.value} cluster")
        managed = change.managed
        yield from _change(change, "      " if managed else "    ")
    if task.unchanged and (everything or task.changes):
        yield Line(f"    {counted(task.unchanged, 'object')} unchanged", _DIM)
    if task.waits:
        yield Line(f"    would wait for {task.waits}", _DIM)


def _change(change: Change, indent: str) -> Iterator[Line]:
    sign, style = _SIGNS[change.verb]
    yield Line(f"{indent}{sign} {change}", style)
    for field in change.fields:
        yield from (Line(f"{indent}    {text}") for text in _field(field))


def _field(field: Field) -> Iterator[str]:
    if field.keys:
        yield f"{field.path} changed: keys {', '.join(field.keys)}"
        return
    changed = text_difference(field.old, field.new) or list_difference(field.old, field.new)
    if changed is None:
        yield f"{field.path}: {shown(field.old)} → {shown(field.new)}"
        return
    yield field.path
    yield from (f"  {line}" for line in changed)


def _summary(plan: Plan) -> str:
    if plan.is_empty:
        return "nothing would change"
    unknown = sum(task.fate is Fate.UNKNOWN for task in plan.tasks)
    parts = [
        f"{counted(plan.count(verb), 'object')} to {verb}" for verb in Verb if plan.count(verb)
    ]
    if unknown:
        parts.append(f"{counted(unknown, 'task')} cannot be foreseen")
    return ", ".join(parts) or "the reconciliation would fail"
