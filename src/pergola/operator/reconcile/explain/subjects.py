"""Resolution of a name: a component, a task, a ManagedResource, or another object."""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import DAEMON_SET, DEPLOYMENT, POD, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Identity
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.operator.reconcile.explain.pods import CLAIM
from pergola.operator.reconcile.explain.reading import Reader
from pergola.operator.reconcile.picture import Picture, Task
from pergola.runtime.task_group import gathered

_LIVE: Final = (POD, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, ETCD, CLAIM)
_ALIKE: Final = 3


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


async def subject_of(client: Client, name: str, picture: Picture) -> Subject:
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
    found = await _live(Reader(client), name, picture)
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
    wanted = [(gvk, namespace) for gvk in kinds for namespace in sorted(namespaces)]
    lists = await gathered(reader.listed(*each) for each in wanted)
    return [
        (Identity(gvk, Key.of(obj)), obj)
        for (gvk, _), objects in zip(wanted, lists, strict=True)
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
