"""Writes of machine objects: only what differs, several at once, classes first (spec 31 §5)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    name_of,
    uid_of,
)
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.workers.desired import PURPOSE, DesiredMachines
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.patches import merge_patch
from pergola.kube.selectors import format_selector
from pergola.runtime.task_group import gathered, together

T = TypeVar("T")

FORCE_DELETION: Final[Mapping[str, str]] = {"force-deletion": "True"}
"""The label with which machine-controller-manager does not drain a Machine."""
CLASS_SECRETS: Final = format_selector({"matchLabels": dict(PURPOSE)})
"""The selector of Secrets that belong to MachineClasses."""
_AT_ONCE: Final = 50
_DELETION_PAUSE: Final = 5.0
_OWN_FIELDS: Final = (
    "provider",
    "providerSpec",
    "nodeTemplate",
    "credentialsSecretRef",
    "secretRef",
    "type",
    "data",
)


class Classes(NamedTuple):
    """The MachineClasses of a namespace, and their Secrets, by name."""

    classes: Mapping[str, JsonObject]
    secrets: Mapping[str, JsonObject]


async def read_classes(client: Client, namespace: str) -> Classes:
    """Return the MachineClasses of a namespace."""
    classes, secrets = await together(
        client.list(MACHINE_CLASS, namespace), client.list(SECRET, namespace, labels=CLASS_SECRETS)
    )
    return Classes(
        {name_of(each): each for each in classes}, {name_of(each): each for each in secrets}
    )


async def write_classes(client: Client, desired: Sequence[DesiredMachines], live: Classes) -> None:
    """Write the Secrets of MachineClasses, then the MachineClasses.

    Raises:
        RequeueAfter: one of them is still being deleted.
        KubeError: the API server refused, or did not answer.
    """
    names = [one.class_name for one in desired]
    wait_for_deletion(SECRET, names, live.secrets)
    wait_for_deletion(MACHINE_CLASS, names, live.classes)
    await each_of(desired, lambda one: _write(client, SECRET, one.secret, live.secrets))
    await each_of(
        desired, lambda one: _write(client, MACHINE_CLASS, one.machine_class, live.classes)
    )


async def renew_credentials(
    client: Client, live: Classes, credentials: JsonObject, written: Collection[str] = ()
) -> None:
    """Let MachineClasses name the current credentials: their machines are deleted with them.

    Args:
        written: the names of MachineClasses that have just been written.
    """
    old = [each for name, each in live.classes.items() if name not in written]
    if credentials:
        await each_of(old, lambda each: _renew(client, each, credentials))


async def write_deployment(client: Client, desired: JsonObject, live: JsonObject | None) -> None:
    """Create a MachineDeployment, or patch what differs."""
    if live is None:
        await client.create(desired)
        return
    spec: JsonObject = {
        name: value
        for name, value in live["spec"].items()
        if name not in ("replicas", "autoPreserveFailedMachineMax")
    }
    metadata = {**live["metadata"], "annotations": None, **desired["metadata"]}
    target: JsonObject = {**live, "metadata": metadata, "spec": {**spec, **desired["spec"]}}
    if patch := merge_patch(live, target):
        await client.patch(MACHINE_DEPLOYMENT, Key.of(live), patch)


def wait_for_deletion(
    kind: GroupVersionKind, names: Iterable[str], live: Mapping[str, JsonObject]
) -> None:
    """Come back later if an object that is needed again is being deleted.

    Raises:
        RequeueAfter: until it is gone, a new one cannot have its name.
    """
    for name in names:
        obj = live.get(name)
        if obj is not None and deletion_timestamp_of(obj) is not None:
            cause = f"{kind.kind} {Key.of(obj)} is needed again, but is still being deleted"
            raise RequeueAfter(_DELETION_PAUSE, ExtensionError(cause))


async def mark_for_force_deletion(client: Client, namespace: str) -> int:
    """Let machine-controller-manager delete all Machines without draining their nodes.

    Returns:
        The number of Machines.
    """
    machines = await client.list(MACHINE, namespace, metadata_only=True)
    unmarked = [each for each in machines if not FORCE_DELETION.items() <= labels_of(each).items()]
    await each_of(unmarked, lambda machine: _mark(client, machine))
    return len(machines)


async def delete_all(client: Client, kind: GroupVersionKind, objects: Iterable[JsonObject]) -> None:
    """Request the deletion of objects, unless it was requested before."""
    remaining = [each for each in objects if deletion_timestamp_of(each) is None]
    await each_of(remaining, lambda obj: _delete(client, kind, obj))


def unused(objects: Mapping[str, JsonObject], used: Collection[str]) -> list[JsonObject]:
    """Return the objects whose names are not used."""
    return [obj for name, obj in objects.items() if name not in used]


async def each_of(items: Sequence[T], act: Callable[[T], Awaitable[None]]) -> None:
    """Handle items at the same time, but no more than 50."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> None:
        async with limit:
            await act(item)

    await gathered(one(item) for item in items)


async def _write(
    client: Client, kind: GroupVersionKind, desired: JsonObject, known: Mapping[str, JsonObject]
) -> None:
    live = known.get(name_of(desired))
    if live is None:
        try:
            await client.create(desired)
        except AlreadyExists:
            live = await client.get(kind, Key.of(desired))
        else:
            return
    target: JsonObject = {
        **live,
        **{field: desired[field] for field in _OWN_FIELDS if field in desired},
        "metadata": {**live["metadata"], "labels": desired["metadata"]["labels"]},
    }
    if patch := merge_patch(live, target):
        await client.patch(kind, Key.of(live), patch)


async def _renew(client: Client, machine_class: JsonObject, credentials: JsonObject) -> None:
    target = {**machine_class, "credentialsSecretRef": credentials}
    with suppress(NotFound):
        if patch := merge_patch(machine_class, target):
            await client.patch(MACHINE_CLASS, Key.of(machine_class), patch)


async def _mark(client: Client, machine: JsonObject) -> None:
    try:
        await client.patch(MACHINE, Key.of(machine), {"metadata": {"labels": dict(FORCE_DELETION)}})
    except NotFound:
        return


async def _delete(client: Client, kind: GroupVersionKind, obj: JsonObject) -> None:
    try:
        await client.delete(kind, Key.of(obj), uid=uid_of(obj))
    except NotFound:
        return
