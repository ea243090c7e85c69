"""The graphs of a plan, drawn."""

from typing import Final, Literal

from pergola.api.texts import counted
from pergola.flow import Graph, picture
from pergola.flow.picture import Fate, Note
from pergola.operator.plan import Fate as Planned
from pergola.operator.plan import Plan, Verb
from pergola.operator.plan import Planned as PlannedTask

Picture = Literal["tree", "dot", "mermaid"]

_DRAW: Final = {"tree": picture.tree, "dot": picture.dot, "mermaid": picture.mermaid}
_FATES: Final = {Verb.CREATE: Fate.CREATE, Verb.CHANGE: Fate.CHANGE, Verb.DELETE: Fate.DELETE}


def pictures(plan: Plan, form: Picture) -> str:
    """Return a drawing of each flow, with what each task would do."""
    parts = []
    for flow in dict.fromkeys(task.flow for task in plan.tasks if task.flow):
        tasks = [task for task in plan.tasks if task.flow == flow]
        graph = Graph(flow)
        for task in tasks:
            graph.add(task.name, _nothing, after=task.after)
        parts.append(_DRAW[form](graph, {task.name: _note(task) for task in tasks}))
    return "\n".join(parts)


async def _nothing() -> None:
    """Do nothing: the graph is only drawn."""


def _note(task: PlannedTask) -> Note:
    if task.fate is Planned.UNKNOWN:
        return Note(Fate.WAITING, f"cannot be foreseen, {task.why}")
    if not task.changes:
        return Note(Fate.SKIP, task.why) if task.fate is Planned.SKIP else Note(Fate.KEEP)
    verbs = {change.verb for change in task.changes}
    fate = _FATES[verbs.pop()] if len(verbs) == 1 else Fate.CHANGE
    count = len(task.changes)
    return Note(fate, counted(count, "object"))
