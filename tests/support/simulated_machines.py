"""Objects as machine-controller-manager leaves them, for more machines than it can make here."""

from collections.abc import Sequence
from typing import Final

from pergola.api.kinds import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    name_of,
    uid_of,
)
from pergola.extensions.workers.deployments import current_replicas
from pergola.extensions.workers.writes import each_of
from pergola.kube.client import Client

_LONGEST: Final = 63
_TIME: Final = "2026-01-01T00:00:00Z"


async def simulate_machines(client: Client, deployments: Sequence[JsonObject]) -> int:
    """Create the MachineSets and running Machines of MachineDeployments; return how many Machines.

    The status of the MachineDeployments does not know of them yet.
    """
    await each_of(deployments, lambda each: _create_machines(client, each))
    return sum(map(current_replicas, deployments))


async def complete(client: Client, deployments: Sequence[JsonObject]) -> None:
    """Write into the status of MachineDeployments that all their Machines run."""
    await each_of(deployments, lambda each: _complete(client, each))


async def interrupt(client: Client, deployment: JsonObject) -> None:
    """Write into the status of a MachineDeployment that none of its Machines runs."""
    status = {"availableReplicas": 0, "unavailableReplicas": current_replicas(deployment)}
    await client.patch(
        MACHINE_DEPLOYMENT, Key.of(deployment), {"status": status}, subresource="status"
    )


async def _create_machines(client: Client, deployment: JsonObject) -> None:
    count, template = current_replicas(deployment), map_at(deployment, "spec", "template")
    labels = map_at(template, "metadata", "labels")
    machine_set = await client.create(
        _owned(deployment, MACHINE_SET, "set")
        | {"spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": template}}
    )
    for number in range(count):
        machine = _owned(machine_set, MACHINE, f"{number:03}")
        machine["metadata"]["labels"] = {**labels, "node": name_of(machine)[-_LONGEST:].lstrip("-")}
        machine["spec"] = {**template["spec"], "providerID": f"aws:///{name_of(machine)}"}
        await client.create(machine)
        status = {
            "currentStatus": {"phase": "Running", "lastUpdateTime": _TIME},
            "lastOperation": {
                "description": f"Machine {name_of(machine)} successfully joined the cluster",
                "lastUpdateTime": _TIME,
                "state": "Successful",
                "type": "Create",
            },
        }
        await client.patch(MACHINE, Key.of(machine), {"status": status}, subresource="status")


def _owned(owner: JsonObject, kind: GroupVersionKind, suffix: str) -> JsonObject:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": f"{name_of(owner)}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": map_at(owner, "spec", "template", "metadata", "labels"),
            "ownerReferences": [reference],
        },
    }


async def _complete(client: Client, deployment: JsonObject) -> None:
    count = current_replicas(deployment)
    status = {
        "observedGeneration": generation_of(deployment),
        "replicas": count,
        "updatedReplicas": count,
        "readyReplicas": count,
        "availableReplicas": count,
        "unavailableReplicas": 0,
        "conditions": [{"type": "Available", "status": "True"}],
    }
    await client.patch(
        MACHINE_DEPLOYMENT, Key.of(deployment), {"status": status}, subresource="status"
    )
