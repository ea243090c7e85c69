"""A picture of a Garden as a tree of its tasks, and its health line by line."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text
from rich.tree import Tree

from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.api.texts import abridged
from pergola.cli.garden.status_lines import operation
from pergola.cli.text import lasting
from pergola.health.conditions import began
from pergola.operator.reconcile.picture import State

if TYPE_CHECKING:
    from pergola.operator.reconcile.picture import Picture, Task, Wait

_STYLES: Final = {
    State.DONE: "green",
    State.RUNNING: "bold cyan",
    State.PENDING: "dim",
    State.SKIPPED: "dim",
    State.FAILED: "bold red",
    State.UNHEALTHY: "bold yellow",
}
_ATTENTION: Final = (State.FAILED, State.UNHEALTHY, State.RUNNING)
_EVERY: Final = tuple(State)
_NEXT: Final = 2
_WAITS: Final = 3
_FEWEST_ROWS: Final = 12
_LONGEST: Final = 200
_LABEL: Final = max(map(len, CARE_CONDITIONS))


def tree(picture: "Picture", now: datetime, *, every: bool = False, rows: int = 0) -> Tree:
    """Return the tasks as a tree: flows, their tasks, and the objects that they wait for.

    Args:
        every: Whether to show every task; by default, finished, skipped and pending tasks are only
            counted.
        rows: The maximum number of lines; 0 for no limit.
    """
    root = Tree(_title(picture, now))
    shown = _EVERY if every else _ATTENTION
    left = max(rows, _FEWEST_ROWS) - len(picture.flows) - 1 if rows else None
    for flow in picture.flows:
        branch = root.add(_flow(picture, flow))
        for task in picture.of(*shown, flow=flow):
            below = list(_below(picture, task, now, every=every))
            if left is not None:
                left -= 1 + len(below)
                if left < 0:
                    branch.add(Text("… more than fit here", style="dim"))
                    break
            twig = branch.add(_task(task, now))
            for line in below:
                twig.add(line)
    return root


def health(picture: "Picture") -> Text:
    """Return the last operation, its errors and the conditions of a Garden, one per line."""
    if not picture.exists:
        return Text(f"Garden {picture.garden} is gone")
    last = picture.operation
    updated = lasting(last.updated, picture.at)
    lines = [_labelled("last operation", operation(last) + (f", {updated} ago" if updated else ""))]
    if last.description:
        lines.append(_labelled("", last.description))
    if picture.note:
        lines.append(_labelled("note", picture.note, "yellow"))
    lines += [_labelled("error", _error(error), "red") for error in picture.errors]
    lines += [_condition(condition, picture.at) for condition in picture.conditions]
    return Text("\n").join(lines)


def _labelled(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{label:{_LABEL}}", "bold"), " ", (" ".join(text.split()), style))


def _title(picture: "Picture", now: datetime) -> Text:
    if not picture.exists:
        return Text(f"Garden {picture.garden} is gone", style="bold")
    title = Text(f"Garden {picture.garden}: {operation(picture.operation)}", style="bold")
    updated = lasting(picture.operation.updated, now)
    if updated and not picture.is_over:
        title.append(f" ({updated} ago)", style="not bold dim")
    if picture.note:
        title.append(f"\n{picture.note}", style="not bold yellow")
    return title


def _flow(picture: "Picture", flow: str) -> Text:
    counts = {state: len(list(picture.of(state, flow=flow))) for state in State}
    total = sum(counts.values()) - counts[State.SKIPPED]
    parts = [f"{counts[State.DONE]} of {total} done"]
    parts += [f"{n} {state}" for state, n in counts.items() if n and state is not State.DONE]
    return Text.assemble((flow, "bold"), ": ", ", ".join(parts))


def _task(task: "Task", now: datetime) -> Text:
    text = Text.assemble((f"{task.state.value:9}", _STYLES[task.state]), " ", task.name)
    time = lasting(task.since, now)
    if time:
        text.append(f" for {time}", style="dim")
    if task.why:
        text.append(f": {_short(task.why)}", style="dim")
    return text


def _below(picture: "Picture", task: "Task", now: datetime, *, every: bool) -> Iterator[Text]:
    shown = task.waits if every else task.waits[:_WAITS]
    for wait in shown:
        yield _wait(wait, now)
    if len(task.waits) > len(shown):
        yield Text(f"and {len(task.waits) - len(shown)} more", style="dim")
    if every and task.after:
        yield Text(f"after {abridged(task.after, _NEXT)}", style="dim")
    elif task.state is State.RUNNING and task.waits:
        following = [t.name for t in picture.of(State.PENDING) if t.after == (task.name,)]
        if following:
            yield Text(f"then {abridged(following, _NEXT)}", style="dim")


def _wait(wait: "Wait", now: datetime) -> Text:
    text = Text.assemble((wait.subject, "yellow"), f": {_short(wait.problem)}")
    time = lasting(wait.since, now)
    return text.append(f" ({time})", style="dim") if time else text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _error(error: "dict[str, object]") -> str:
    codes = error.get("codes")
    named = f" [{', '.join(map(str, codes))}]" if isinstance(codes, list) and codes else ""
    return f"{error.get('description')}{named}"


def _condition(condition: "dict[str, object]", now: datetime) -> Text:
    status = str(condition.get("status"))
    style = {"True": "green", "Progressing": "yellow"}.get(status, "red")
    time = lasting(began(condition), now)
    line = _labelled(str(condition.get("type")), status, style)
    message = " ".join(str(condition.get("message")).split())
    line.append(f" {condition.get('reason')}: {message}")
    return line.append(f" ({time})", style="dim") if time else line
