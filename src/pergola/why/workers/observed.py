"""The objects of machine-controller-manager in a namespace, and where machines belong."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET
from pergola.api.objects import (
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    name_of,
    namespace_of,
)
from pergola.api.texts import abridged
from pergola.extension_api.kinds import WORKER
from pergola.extensions.workers.deployments import NAME_LABEL, POOL_LABEL
from pergola.extensions.workers.desired import NODE_ZONE
from pergola.extensions.workers.live import Live, class_of
from pergola.extensions.workers.rollout import is_being_updated, number, old_machines
from pergola.why.answer import Statement, Topic
from pergola.why.reading import Reader

NODE_LABEL: Final = "node"
"""The label of a Machine with the name of its node."""
SELECTED: Final = "node.machine.sapcloud.io/selected-for-update"
"""The label with which users start the update of a node."""
_START: Final = (
    f"in the Shoot, for one node after the other: kubectl label node {{node}} {SELECTED}=true"
)
_MANUAL: Final = "Manual"
_SHOWN: Final = 3
_ZONE: Final = "topology.kubernetes.io/zone"


async def observe(reader: Reader, namespace: str) -> Live:
    """Return all objects of machine-controller-manager in a namespace."""
    deployments = await reader.listed(MACHINE_DEPLOYMENT, namespace)
    return Live(
        {name_of(each): each for each in deployments},
        await reader.listed(MACHINE_SET, namespace),
        await reader.listed(MACHINE, namespace),
    )


async def of_worker(reader: Reader, deployment: JsonObject) -> list[Statement]:
    """Return the Worker and the pool of a MachineDeployment."""
    pool = labels_of(deployment).get(POOL_LABEL, "")
    found = []
    for worker in await reader.listed(WORKER, namespace_of(deployment)):
        if any(each.get("name") == pool for each in maps_at(worker, "spec", "pools")):
            text = f"for worker pool {pool}{_in_zone(zone_in(deployment))}"
            subject = f"{WORKER.kind} {Key.of(worker)}"
            found.append(Statement(topic=Topic.WANTED, subject=subject, text=text))
    return found


async def class_statements(reader: Reader, obj: JsonObject) -> list[Statement]:
    """Return the MachineClass of a Machine or MachineDeployment, or that it is missing."""
    key = Key(namespace_of(obj), class_of(obj))
    if not key.name:
        return []
    if await reader.is_missing(MACHINE_CLASS, key):
        return [
            Statement(
                topic=Topic.PROBLEM,
                subject=f"{MACHINE_CLASS.kind} {key}",
                text="it does not exist, so no machine can be created with it or deleted",
                advice="have the extension write it again: kubectl annotate worker --all "
                f"-n {key.namespace} --overwrite gardener.cloud/operation=reconcile",
            )
        ]
    found = await reader.find(MACHINE_CLASS, key) or {}
    zone = labels_of(found).get(NODE_ZONE, "") or zone_in(obj)
    text = f"machines are made as {MACHINE_CLASS.kind} {key.name} says"
    return [Statement(topic=Topic.DECIDED, text=f"{text}{_in_zone(zone)}")]


def deployment_of(machine: JsonObject) -> Key:
    """Return the key of the MachineDeployment of a Machine."""
    return Key(namespace_of(machine), labels_of(machine).get(NAME_LABEL, ""))


def zone_in(obj: JsonObject) -> str:
    """Return the zone of the nodes of a Machine or MachineDeployment; empty if unknown."""
    spec = map_at(obj, "spec", "template", "spec") or map_at(obj, "spec")
    return str(map_at(spec, "nodeTemplate", "metadata", "labels").get(_ZONE) or "")


def roll_out(name: str, live: Live) -> Iterator[Statement]:
    """Yield which class replaces which one, or how far an update in place has got."""
    deployment = live.deployments[name]
    new = class_of(deployment)
    if in_place := map_at(deployment, "spec", "strategy", "inPlaceUpdate"):
        is_manual = in_place.get("orchestrationType") == _MANUAL
        yield from _updates(deployment, [*old_machines(name, new, live)], is_manual=is_manual)
        return
    old = {
        class_of(each): number(each, "replicas")
        for each in live.sets_of(name)
        if class_of(each) != new and number(each, "replicas")
    }
    if old:
        left = ", ".join(f"{count} of {each}" for each, count in sorted(old.items()))
        updated = number(deployment, "updatedReplicas")
        yield Statement(
            topic=Topic.WAITS,
            subject=f"{MACHINE_DEPLOYMENT.kind} {Key.of(deployment)}",
            text=f"a roll-out: class {new} has {updated} machine(s), and replaces {left}",
        )


def _updates(
    deployment: JsonObject, machines: Sequence[JsonObject], *, is_manual: bool
) -> Iterator[Statement]:
    """Yield the machines that are being updated in place, and how many still wait.

    Args:
        machines: those that are not updated yet.
    """
    subject = f"{MACHINE_DEPLOYMENT.kind} {Key.of(deployment)}"
    updating = sorted(name_of(each) for each in machines if is_being_updated(each))
    waiting = [each for each in machines if not is_being_updated(each)]
    if updating:
        text = f"an update in place of {abridged(updating, _SHOWN)}"
        yield Statement(topic=Topic.WAITS, subject=subject, text=text)
    if waiting and is_manual:
        nodes = sorted(filter(None, (labels_of(each).get(NODE_LABEL) for each in waiting)))
        yield Statement(
            topic=Topic.WAITS,
            subject=subject,
            text=f"{len(waiting)} machine(s) wait until their update in place is started",
            because="the pool has the strategy ManualInPlaceUpdate",
            advice=_START.format(node=nodes[0]) if nodes else "",
        )
    elif waiting:
        text = f"{len(waiting)} machine(s) wait for their update in place"
        yield Statement(topic=Topic.WAITS, subject=subject, text=text)


def _in_zone(zone: str) -> str:
    return f", in zone {zone}" if zone else ""
