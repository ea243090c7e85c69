"""The answer to why a part of a Garden is as it is."""

from collections.abc import Iterable, Sequence
from typing import Final

from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Identity
from pergola.kube.client import Client
from pergola.operator.reconcile.explain.finding import Answer, Finding
from pergola.operator.reconcile.explain.reading import Reader
from pergola.operator.reconcile.explain.subjects import Subject, subject_of
from pergola.operator.reconcile.explain.walk import explain
from pergola.operator.reconcile.picture import Picture, State, Task
from pergola.runtime.task_group import gathered

_BY_WEIGHT: Final = (
    State.FAILED,
    State.RUNNING,
    State.UNHEALTHY,
    State.PENDING,
    State.DONE,
    State.SKIPPED,
)
_BLOCKING: Final = (State.FAILED, State.RUNNING, State.UNHEALTHY)
_EXPLAINED: Final = 3


async def answer(client: Client, name: str, picture: Picture) -> Answer:
    """Return why the subject of a name exists, is skipped, unhealthy or stuck.

    Raises:
        Unknown: The name has no subject.
        KubeError: The API server refused, or did not answer.
    """
    subject = await subject_of(client, name, picture)
    if subject.identity is None:
        return await _about_task(client, name, subject, _foremost(subject.tasks), picture)
    task = _foremost(subject.tasks) if subject.tasks else None
    return await _about_object(client, name, subject, task, subject.identity, picture)


def _foremost(tasks: Iterable[Task]) -> Task:
    """Return the task with the most significant state."""
    return min(tasks, key=lambda it: _BY_WEIGHT.index(it.state))


async def _about_object(
    client: Client,
    name: str,
    subject: Subject,
    task: Task | None,
    identity: Identity,
    picture: Picture,
) -> Answer:
    reader = Reader(client)
    has_started = task is None or task.state not in (State.PENDING, State.SKIPPED)
    if task is not None and not has_started and await reader.is_missing(identity):
        return await _about_task(client, name, subject, task, picture)
    found = await explain(client, identity)
    whose = f", which belongs to component {subject.component}," if subject.component else ""
    named = f"{identity.gvk.kind} {identity.key}{whose}"
    findings = (found,) if found else ()
    state = State.DONE if found is None else State.UNHEALTHY
    if found is not None and task is not None and task.state in _BLOCKING:
        state = task.state
    return Answer(
        name=name,
        component=subject.component,
        state=state,
        sentence=f"{named} {'is not ready' if found else 'is as it should be'}",
        tasks=subject.tasks,
        findings=findings,
        next_step=_next_step(findings),
    )


async def _about_task(
    client: Client, name: str, subject: Subject, task: Task, picture: Picture
) -> Answer:
    whole = f"component {subject.component}" if subject.component else f'task "{task.name}"'
    blockers = _blockers(picture, task) if task.state is State.PENDING else ()
    findings = await _findings(client, [task] if task.state in _BLOCKING else blockers)
    return Answer(
        name=name,
        component=subject.component,
        state=task.state,
        sentence=_sentence(whole, task, blockers, picture),
        tasks=subject.tasks,
        blockers=blockers,
        findings=findings,
        next_step=_next_step(findings),
    )


def _sentence(whole: str, task: Task, blockers: Sequence[Task], picture: Picture) -> str:
    match task.state:
        case State.SKIPPED:
            return f"{whole} is skipped: {task.why}"
        case State.FAILED:
            return f'task "{task.name}" failed: {_reason(task)}'
        case State.RUNNING:
            return f'task "{task.name}" runs, and waits for {_objects(task)}'
        case State.UNHEALTHY:
            return f"{whole} was ready, and is not any more: {_objects(task)} is not ready"
        case State.PENDING:
            return f"{whole} has not started: {_pending(task, blockers, picture)}"
    if picture.operation.type == "Delete":
        return f"{whole} is gone: Garden {picture.garden} is being deleted"
    return f"{whole} is there because the Garden needs it{_as(task)}"


def _pending(task: Task, blockers: Sequence[Task], picture: Picture) -> str:
    if blockers:
        first = blockers[0]
        others = f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
        return f'it comes after "{first.name}", which {_DOING[first.state]}{others}'
    if picture.note:
        return picture.note
    if picture.has_failed:
        return f"the operation failed before: {picture.operation.description}"
    after = ", ".join(f'"{name}"' for name in task.after)
    return f"it comes after {after}" if after else "the operation has just begun"


_DOING: Final = {
    State.FAILED: "failed",
    State.RUNNING: "runs",
    State.UNHEALTHY: "is not ready any more",
}


def _blockers(picture: Picture, task: Task) -> tuple[Task, ...]:
    """Return the earlier tasks that failed, are running, or are no longer ready."""
    tasks = {each.name: each for each in picture.tasks}
    seen: set[str] = set()
    open_names = list(task.after)
    while open_names:
        name = open_names.pop()
        if name not in seen:
            seen.add(name)
            open_names += tasks[name].after
    found = [each for each in picture.tasks if each.name in seen and each.state in _BLOCKING]
    return tuple(sorted(found, key=lambda it: _BY_WEIGHT.index(it.state)))


async def _findings(client: Client, tasks: Iterable[Task]) -> tuple[Finding, ...]:
    """Return the problems of the objects that some tasks wait for."""
    waits = [wait for task in tasks for wait in task.waits][:_EXPLAINED]
    known = [wait.identity for wait in waits if wait.identity is not None]
    explained = await gathered(explain(client, identity) for identity in known)
    found = dict(zip(known, explained, strict=True))
    findings = []
    for wait in waits:
        # The object may have become ready, or only the operator's report may name it.
        plain = Finding(subject=wait.subject, problem=wait.problem, since=wait.since)
        finding = found.get(wait.identity) if wait.identity else plain
        findings += [finding] if finding else []
    return tuple(findings)


def _next_step(findings: Iterable[Finding]) -> str:
    return next(filter(None, (finding.next_step for finding in findings)), "")


def _reason(task: Task) -> str:
    return task.why.removeprefix(f'task "{task.name}" failed: ')


def _objects(task: Task) -> str:
    if not task.waits:
        return "something that the cluster does not show"
    more = f" and {len(task.waits) - 1} more" if len(task.waits) > 1 else ""
    return f"{task.waits[0].subject}{more}"


def _as(task: Task) -> str:
    """Return the objects of a component: its ManagedResources, else those of the operator."""
    objects = [each for each in task.objects if each.gvk == MANAGED_RESOURCE] or [*task.objects]
    if not objects:
        return ""
    first, *others = objects
    more = f" and {len(others)} more" if others else ""
    return f", as {first.gvk.kind} {first.key}{more}"
