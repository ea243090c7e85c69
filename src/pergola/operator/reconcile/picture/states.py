"""Determining the states of tasks from the operator's report and the cluster; pure.

The report names running tasks, so those before them are done and those after them have not started.
It may be some seconds old, or its writer may be down. Live objects therefore decide about the
others: a task whose objects are not ready is running, once all tasks before it are done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pergola.api.objects import Identity, JsonObject
from pergola.health.since import since
from pergola.operator.reconcile.picture.picture import Operation, State, Task, Wait
from pergola.operator.reconcile.picture.reported import Reported, began, finished, running
from pergola.operator.reconcile.picture.steps import Step
from pergola.operator.reconcile.status import INITIALIZED

Live = Callable[[Identity], JsonObject | None]
"""Returns an object in the cluster, or None if it does not exist."""

_ENDED = (State.DONE, State.SKIPPED)


def states(
    steps: Sequence[Step], operation: Operation, failures: Mapping[str, str], live: Live
) -> list[Task]:
    """Return the tasks with their states.

    Args:
        steps: In order of their dependencies.
        failures: The descriptions of failed tasks, by name; used only if the operation has ended.
    """
    known = _known(steps, operation, failures)
    found: dict[str, Task] = {}
    for step in steps:
        open_before = tuple(name for name in step.after if found[name].state not in _ENDED)
        found[step.name] = _task(step, known, open_before, _waits(step, live))
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The information in a Garden's status about its tasks, by their names.

    Attributes:
        is_running: Whether an operation runs.
        done: Tasks that must be done, because tasks after them have started.
        pending: Tasks that cannot have started.
    """

    is_running: bool
    reported: Mapping[str, Reported] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    done: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()


def _known(steps: Sequence[Step], operation: Operation, failures: Mapping[str, str]) -> _Known:
    names = [step.name for step in steps]
    if not operation.type:
        return _Known(is_running=False, pending=frozenset(names))
    if operation.state == "Succeeded":
        return _Known(is_running=False, done=frozenset(names))
    if operation.state not in ("Pending", "Processing"):
        failed = {name: failures[name] for name in names if name in failures}
        done, pending = _around(steps, failed)
        return _Known(is_running=False, failures=failed, done=done, pending=pending)
    if operation.description in INITIALIZED.values():
        return _Known(is_running=True, pending=frozenset(names))
    reported = running(operation.description, names)
    done, pending = _around(steps, reported)
    done |= _done_flows(steps, operation.description)
    return _Known(is_running=True, reported=reported, done=done, pending=pending)


def _task(step: Step, known: _Known, after: tuple[str, ...], waits: tuple[Wait, ...]) -> Task:
    state, why = _state(step, known, after, waits)
    if state is State.RUNNING and not waits and step.name in known.reported:
        subject, problem = known.reported[step.name]
        waits = (Wait(subject, problem),) if subject else ()
    shows_waits = state in (State.RUNNING, State.UNHEALTHY, State.FAILED)
    return Task(
        name=step.name,
        flow=step.flow,
        state=state,
        why=why,
        waits=waits if shows_waits else (),
        after=after if state is State.PENDING else (),
        dependencies=step.after,
        component=step.component,
        objects=tuple(each.identity for each in step.awaited),
    )


def _state(
    step: Step, known: _Known, after: tuple[str, ...], waits: tuple[Wait, ...]
) -> tuple[State, str]:
    if step.name in known.failures:
        return State.FAILED, known.failures[step.name]
    if step.name in known.reported:
        return State.RUNNING, ""
    if step.skipped and not waits:
        return State.SKIPPED, step.skipped
    if step.name in known.pending:
        return State.PENDING, ""
    if step.name in known.done:
        return (State.UNHEALTHY if waits and not known.is_running else State.DONE), ""
    if after or (waits and not known.is_running and not any(each.exists for each in waits)):
        return State.PENDING, ""
    if waits:
        return (State.RUNNING if known.is_running else State.UNHEALTHY), ""
    return State.DONE, ""


def _waits(step: Step, live: Live) -> tuple[Wait, ...]:
    found = []
    for identity, problem_of in step.awaited:
        obj = live(identity)
        problem = problem_of(obj)
        if problem is not None:
            subject = f"{identity.gvk.kind} {identity.key}"
            began_at = since(obj, problem) if obj is not None else None
            found.append(Wait(subject, problem, began_at, obj is not None, identity))
    return tuple(found)


def _around(steps: Sequence[Step], started: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tasks before and after some started tasks, at any distance.

    Args:
        steps: In order of their dependencies.
    """
    names = set(started)
    before, behind = set(names), set(names)
    for step in reversed(steps):
        if step.name in before:
            before.update(step.after)
    for step in steps:
        if not behind.isdisjoint(step.after):
            behind.add(step.name)
    return frozenset(before - names), frozenset(behind - names)


def _done_flows(steps: Sequence[Step], description: str) -> frozenset[str]:
    """Return the tasks of completed flows, if the description is about a whole flow."""
    flows = list(dict.fromkeys(step.flow for step in steps))
    current = began(description, flows)
    over = flows[: flows.index(current)] if current else []
    if ended := finished(description, flows):
        over = flows[: flows.index(ended) + 1]
    return frozenset(step.name for step in steps if step.flow in over)
