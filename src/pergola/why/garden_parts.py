"""Why a part of a Garden is as it is: a component, a task, a ManagedResource, or an object.

A name is resolved to its subject first, in the picture of the Garden and then in its cluster.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import DAEMON_SET, DEPLOYMENT, POD, PVC, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, JsonValue, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.api.texts import abridged
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.operator.reconcile.picture import Picture, State, Task
from pergola.runtime.task_group import gathered
from pergola.why.answer import Answer, Statement
from pergola.why.health import unhealthy
from pergola.why.health.details import problem_of
from pergola.why.reading import Reader

_LIVE: Final = (POD, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, ETCD, PVC)
_ALIKE: Final = 3
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


class Unknown(OperatorError):
    """A name that nothing in the Garden has; the text suggests similar ones."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question.

    Attributes:
        tasks: The tasks of the component, or a single task that belongs to none.
        identity: The object, if the name refers to one.
    """

    component: str
    tasks: tuple[Task, ...]
    identity: Identity | None = None


async def subject_of(reader: Reader, name: str, picture: Picture) -> Subject:
    """Return the subject of a name: in this order, a component, task, ManagedResource or object.

    Args:
        name: Objects may be given as `NAME`, `KIND/NAME` or `NAMESPACE/NAME`.

    Raises:
        Unknown: It means nothing.
        KubeError: The API server refused, or did not answer.
    """
    for task in picture.tasks:
        if name.lower() in (task.component.lower(), task.name.lower()):
            return _of(picture, task)
    for task in picture.tasks:
        for identity in sorted(task.objects, key=lambda it: it.gvk != MANAGED_RESOURCE):
            if _means(name, identity):
                return _of(picture, task, identity)
    found = await _live(reader, name, picture)
    if found is None:
        raise _unknown(name, picture)
    return found


def _of(picture: Picture, task: Task, identity: Identity | None = None) -> Subject:
    if not task.component:
        return Subject("", (task,), identity)
    tasks = tuple(each for each in picture.tasks if each.component == task.component)
    return Subject(task.component, tasks, identity)


async def _live(reader: Reader, name: str, picture: Picture) -> Subject | None:
    """Return the object of this name in a ManagedResource, or in its namespaces."""
    namespaces = {NAMESPACE} | {
        identity.key.namespace
        for task in picture.tasks
        for identity in task.objects
        if identity.gvk == MANAGED_RESOURCE
    }
    resources = await _all(reader, [MANAGED_RESOURCE], namespaces)
    for managed, resource in resources:
        for identity in _managed(resource):
            if _means(name, identity):
                owner = _owner(picture, managed)
                return _of(picture, owner, identity) if owner else Subject("", (), identity)
    for identity, _ in await _all(reader, _LIVE, namespaces):
        if _means(name, identity):
            return Subject("", (), identity)
    return None


async def _all(
    reader: Reader, kinds: Iterable[GroupVersionKind], namespaces: Iterable[str]
) -> list[tuple[Identity, JsonObject]]:
    places = [(gvk, namespace) for gvk in kinds for namespace in sorted(namespaces)]
    lists = await gathered(reader.listed(*each) for each in places)
    return [
        (Identity(gvk, Key.of(obj)), obj)
        for (gvk, _), objects in zip(places, lists, strict=True)
        for obj in objects
    ]


def _managed(resource: JsonObject) -> Iterator[Identity]:
    for reference in maps_at(resource, "status", "resources"):
        gvk = GroupVersionKind.parse(str(reference.get("apiVersion")), str(reference.get("kind")))
        key = Key(str(reference.get("namespace") or ""), str(reference.get("name")))
        yield Identity(gvk, key)


def _owner(picture: Picture, managed: Identity) -> Task | None:
    return next((task for task in picture.tasks if managed in task.objects), None)


def _means(name: str, identity: Identity) -> bool:
    gvk, key = identity
    return name in (key.name, str(key)) or name.lower() == f"{gvk.kind}/{key.name}".lower()


def _unknown(name: str, picture: Picture) -> Unknown:
    names = {task.component for task in picture.tasks} | {task.name for task in picture.tasks}
    names |= {each.key.name for task in picture.tasks for each in task.objects}
    alike = difflib.get_close_matches(name, names - {""}, n=_ALIKE)
    more = f"; did you mean {' or '.join(alike)}?" if alike else ""
    return Unknown(
        f'Garden {picture.garden} has no component, task, ManagedResource or object "{name}"{more}'
    )


async def answer(reader: Reader, name: str, picture: Picture) -> Answer:
    """Return why the subject of a name exists, is skipped, unhealthy or stuck.

    Raises:
        Unknown: The name has no subject.
        KubeError: The API server refused, or did not answer.
    """
    subject = await subject_of(reader, name, picture)
    if subject.identity is None:
        return await _about_task(reader, name, subject, _foremost(subject.tasks), picture)
    task = _foremost(subject.tasks) if subject.tasks else None
    return await _about_object(reader, name, subject, task, subject.identity, picture)


def _foremost(tasks: Iterable[Task]) -> Task:
    """Return the task with the most significant state."""
    return min(tasks, key=lambda it: _BY_WEIGHT.index(it.state))


async def _about_object(
    reader: Reader,
    name: str,
    subject: Subject,
    task: Task | None,
    identity: Identity,
    picture: Picture,
) -> Answer:
    has_started = task is None or task.state not in (State.PENDING, State.SKIPPED)
    if task is not None and not has_started and await reader.is_missing(*identity):
        return await _about_task(reader, name, subject, task, picture)
    found = await unhealthy(identity, reader)
    whose = f", which belongs to component {subject.component}," if subject.component else ""
    named = f"{identity.gvk.kind} {identity.key}{whose}"
    findings = (found,) if found else ()
    state = State.DONE if found is None else State.UNHEALTHY
    if found is not None and task is not None and task.state in _BLOCKING:
        state = task.state
    sentence = f"{named} {'is not ready' if found else 'is as it should be'}"
    return _answer(name, state, sentence, reader, subject, findings)


async def _about_task(
    reader: Reader, name: str, subject: Subject, task: Task, picture: Picture
) -> Answer:
    whole = f"component {subject.component}" if subject.component else f'task "{task.name}"'
    blockers = _blockers(picture, task) if task.state is State.PENDING else ()
    findings = await _findings(reader, [task] if task.state in _BLOCKING else blockers)
    sentence = _sentence(whole, task, blockers, picture)
    return _answer(name, task.state, sentence, reader, subject, findings, blockers)


def _answer(
    name: str,
    state: State,
    sentence: str,
    reader: Reader,
    subject: Subject,
    findings: tuple[Statement, ...],
    blockers: Sequence[Task] = (),
) -> Answer:
    tasks: list[JsonValue] = [
        {"name": each.name, "state": each.state.value, "why": each.why} for each in subject.tasks
    ]
    blocked_by: list[JsonValue] = [
        {"name": each.name, "state": each.state.value} for each in blockers
    ]
    return Answer(
        name=name,
        state=state.value,
        sentence=sentence.removesuffix("."),
        statements=findings,
        next_steps=_next_steps(findings),
        unread=reader.unread,
        details={"component": subject.component, "tasks": tasks, "blockedBy": blocked_by},
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


async def _findings(reader: Reader, tasks: Iterable[Task]) -> tuple[Statement, ...]:
    """Return the problems of the objects that some tasks wait for."""
    waits = [wait for task in tasks for wait in task.waits][:_EXPLAINED]
    known = [wait.identity for wait in waits if wait.identity is not None]
    explained = await gathered(unhealthy(identity, reader) for identity in known)
    found = dict(zip(known, explained, strict=True))
    findings = []
    for wait in waits:
        # The object may have become ready, or only the operator's report may name it.
        plain = problem_of(wait.subject, wait.problem, since=wait.since)
        finding = found.get(wait.identity) if wait.identity else plain
        findings += [finding] if finding else []
    return tuple(findings)


def _next_steps(findings: Iterable[Statement]) -> tuple[str, ...]:
    return tuple(filter(None, (finding.next_step for finding in findings)))[:1]


def _reason(task: Task) -> str:
    return task.why.removeprefix(f'task "{task.name}" failed: ')


def _objects(task: Task) -> str:
    if not task.waits:
        return "something that the cluster does not show"
    return abridged([wait.subject for wait in task.waits], 1)


def _as(task: Task) -> str:
    """Return the objects of a component: its ManagedResources, else those of the operator."""
    objects = [each for each in task.objects if each.gvk == MANAGED_RESOURCE] or [*task.objects]
    if not objects:
        return ""
    return f", as {abridged([f'{each.gvk.kind} {each.key}' for each in objects], 1)}"
