"""The tasks of a flow, as drawn by the page."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.operator.reconcile.picture import Operation, Task


def flow_data(tasks: "Sequence[Task]", operation: "Operation", note: str) -> "JsonObject":
    """Return a flow; each task has its dependencies, without transitive ones."""
    before = _without_transitive(tasks)
    return {
        "note": note,
        "operation": {
            "type": operation.type,
            "state": operation.state,
            "progress": operation.progress,
            "description": operation.description,
        },
        "tasks": [_task(task, before[task.name]) for task in tasks],
    }


def _task(task: "Task", after: Sequence[str]) -> "JsonObject":
    from pergola.dashboard.state.cards import card_id

    return {
        "name": task.name,
        "flow": task.flow,
        "component": task.component,
        "state": task.state.value,
        "why": task.why,
        "since": _time(task.since),
        "after": [*after],
        "waitsFor": [
            {
                "subject": wait.subject,
                "problem": wait.problem,
                "since": _time(wait.since),
                "id": card_id(*wait.identity) if wait.identity else "",
            }
            for wait in task.waits
        ],
        "objects": [card_id(*each) for each in task.objects],
    }


def _without_transitive(tasks: "Sequence[Task]") -> dict[str, list[str]]:
    """Return the dependencies of each task that are not implied by others.

    Args:
        tasks: In order of their dependencies.
    """
    behind: dict[str, set[str]] = {}
    kept: dict[str, list[str]] = {}
    for task in tasks:
        known = [name for name in task.dependencies if name in behind]
        implied = set().union(*(behind[name] for name in known))
        kept[task.name] = [name for name in known if name not in implied]
        behind[task.name] = implied.union(known)
    return kept


def _time(time: datetime | None) -> str:
    from pergola.api.conditions import timestamp

    return "" if time is None else timestamp(time)
