"""The writes of kubelets and gardener-node-agents in a Shoot whose nodes kwok simulates."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import orjson

from pergola.api.kinds import CSI_NODE, NODE, POD, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.manifests import manifest

_MANAGER: Final = "pergola-sandbox"
_NODE: Final = "node"
"""The label of a Machine with the name of its Node."""
_SYSTEM: Final = "kube-system"
_CONFIGURATIONS: Final = "gardener.cloud/role=operating-system-config"
_POOL: Final = "worker.gardener.cloud/pool"
_DESIRED: Final = "checksum/data-script"
_APPLIED: Final = "checksum/cloud-config-data"
# Kubelets register their nodes with it; the resource manager of the Shoot removes it.
_NOT_READY: Final = {
    "key": "node.gardener.cloud/critical-components-not-ready",
    "effect": "NoSchedule",
}
_ATTACHING: Final = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
_WAIT_FOR_CSI: Final = "node.gardener.cloud/wait-for-csi-node-"
_LEASE_SECONDS: Final = 40
# A webhook of provider-local changes these, which every kubelet reports when it registers its node.
_RESOURCES: Final = {"cpu": "2", "memory": "4Gi", "pods": "110"}
_NODE_INFO: Final = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)
_STATUS: Final = {"capacity": _RESOURCES, "allocatable": _RESOURCES}


def joining(machine: JsonObject | None) -> JsonObject | None:
    """Return the Node that the kubelet of a machine creates; None if it does not run."""
    if machine is None or deletion_timestamp_of(machine) is not None:
        return None
    name, provider_id = labels_of(machine).get(_NODE), map_at(machine, "spec").get("providerID")
    if not name or not provider_id:
        return None
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    spec = {"taints": [_NOT_READY], "providerID": provider_id}
    return manifest("v1", "Node", name, labels=labels, annotations=_ATTACHING, spec=spec)


async def register(shoot: Client, node: JsonObject) -> None:
    """Create a Node, whose kubelet has the version of the API server."""
    version = orjson.loads(await shoot.get_raw("/version"))["gitVersion"]
    info: JsonObject = {**dict.fromkeys(_NODE_INFO, ""), "kubeletVersion": version}
    with suppress(AlreadyExists):
        await shoot.create({**node, "status": {**_STATUS, "nodeInfo": info}})


async def report(shoot: Client, port: int) -> None:
    """Report what kubelets and gardener-node-agents do on all nodes of a Shoot.

    Args:
        port: of the kubelets, which changes with the Seed.
    """
    nodes = await shoot.list(NODE)
    endpoints: JsonObject = {"kubeletEndpoint": {"Port": port}}
    for node in nodes:
        if map_at(node, "status").get("daemonEndpoints") != endpoints:
            patch: JsonObject = {"status": {"daemonEndpoints": endpoints}}
            await shoot.patch(NODE, Key.of(node), patch, subresource="status")
    await _configure(shoot, nodes)
    await _register_drivers(shoot, nodes)
    for node in nodes:
        await _renew_lease(shoot, name_of(node))


async def _configure(shoot: Client, nodes: list[JsonObject]) -> None:
    """Report that nodes have the current configuration of their worker pools."""
    secrets = await shoot.list(SECRET, _SYSTEM, labels=_CONFIGURATIONS, metadata_only=True)
    checksums = {labels_of(each).get(_POOL): annotations_of(each).get(_DESIRED) for each in secrets}
    for node in nodes:
        desired = checksums.get(labels_of(node).get(_POOL))
        if desired and annotations_of(node).get(_APPLIED) != desired:
            patch: JsonObject = {"metadata": {"annotations": {_APPLIED: desired}}}
            await shoot.patch(NODE, Key.of(node), patch)


async def _register_drivers(shoot: Client, nodes: list[JsonObject]) -> None:
    """Register the CSI drivers that run on each node."""
    drivers: dict[str, set[str]] = {}
    for pod in await shoot.list(POD, _SYSTEM):
        if map_at(pod, "status").get("phase") == "Running":
            waited_for = (
                driver
                for name, driver in annotations_of(pod).items()
                if name.startswith(_WAIT_FOR_CSI)
            )
            drivers.setdefault(str(map_at(pod, "spec").get("nodeName")), set()).update(waited_for)
    known = {name_of(each): maps_at(each, "spec", "drivers") for each in await shoot.list(CSI_NODE)}
    for node in nodes:
        name = name_of(node)
        desired = [_registration(driver, node) for driver in sorted(drivers.get(name, ()))]
        current = known.get(name, [])
        if desired == current:
            continue
        if current:  # a registration cannot be changed, only withdrawn
            await _write_registrations(shoot, name, [])
        if desired:
            await _write_registrations(shoot, name, desired)


async def _write_registrations(shoot: Client, node: str, drivers: list[JsonObject]) -> None:
    csi_node = manifest(CSI_NODE.api_version, CSI_NODE.kind, node, spec={"drivers": drivers})
    await shoot.apply(csi_node, manager=_MANAGER, force=True)


def _registration(driver: str, node: JsonObject) -> JsonObject:
    """Return the registration of a driver: the instance, and the labels of its topology."""
    instance = str(map_at(node, "spec").get("providerID") or name_of(node)).rpartition("/")[2]
    topology = sorted(label for label in labels_of(node) if label.startswith(f"topology.{driver}/"))
    found: JsonObject = {"name": driver, "nodeID": instance}
    return {**found, "topologyKeys": topology} if topology else found


async def _renew_lease(shoot: Client, node: str) -> None:
    """Report that gardener-node-agent runs on a node."""
    spec: JsonObject = {
        "leaseDurationSeconds": _LEASE_SECONDS,
        "renewTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    name = f"gardener-node-agent-{node}"
    lease = manifest("coordination.k8s.io/v1", "Lease", name, namespace=_SYSTEM, spec=spec)
    await shoot.apply(lease, manager=_MANAGER, force=True)
