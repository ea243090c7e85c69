"""Nodes of Shoots for the machines of provider-local.

Its machines are pods in the cluster of the Seed, which kwok simulates there; nothing runs in them,
so kwok also simulates the kubelets, in the clusters of the Shoots. This module registers the nodes
as kubelets do, and reports what gardener-node-agent does when it has configured a machine.
"""

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.kinds import NODE, POD, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.manifests import manifest
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.child import Child
from pergola.sandbox.components import simulating
from pergola.sandbox.directory import write
from pergola.sandbox.late_kinds import whole

_LABELS: Final = "app=machine,machine-provider=local"
_PREFIX: Final = "infra-"
_ACCESS: Final = "gardener-internal"
_RETRY: Final = 5.0
_AGENT_SECONDS: Final = 5.0
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
_LEASE_SECONDS: Final = 40
# A webhook of provider-local changes these, which every kubelet reports when it registers its node.
_RESOURCES: Final = {"cpu": "2", "memory": "4Gi", "pods": "110"}
_STATUS: Final = {"capacity": _RESOURCES, "allocatable": _RESOURCES}


class Machines:
    """A reconciler of the machines of one Shoot: a kwok, and a Node for each of them.

    Args:
        client: of the Seed.
        pods: the machines of all Shoots.
        program: kwok.
        directory: for files and logs.
        proxy: of the Seed's node.
    """

    def __init__(
        self, client: Client, pods: Cache[JsonObject], program: Path, directory: Path, proxy: str
    ) -> None:
        self._client = client
        self._pods = pods
        self._program = program
        self._directory = directory
        self._proxy = proxy
        self._kwoks: dict[str, Child] = {}

    async def reconcile(self, namespace: str) -> Outcome:
        """Simulate the nodes of the machines in a namespace, or stop if there are none."""
        names = [
            name_of(pod)
            for key, pod in self._pods.items()
            if key.namespace == namespace and map_at(pod, "status").get("phase") == "Running"
        ]
        if not names:
            await self._stop(namespace)
            return DONE
        kubeconfig = await self._access(namespace)
        if kubeconfig is None:
            return Again(_RETRY)
        await self._simulate(namespace, kubeconfig)
        async with Client.connect(load(kubeconfig)) as shoot:
            for name in names:
                await _register(shoot, name)
            await _configure(shoot)
        return Again(_AGENT_SECONDS)

    async def close_at_end(self) -> None:
        """Stop all processes when this task is cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            for namespace in [*self._kwoks]:
                await self._stop(namespace)

    async def _access(self, namespace: str) -> Path | None:
        """Write gardenlet's kubeconfig of the Shoot, and return its file."""
        key = Key(namespace.removeprefix(_PREFIX), _ACCESS)
        secret = await self._client.find(SECRET, key)
        content = map_at(secret or {}, "data").get("kubeconfig")
        document = parse(base64.b64decode(content)) if content else None
        if not isinstance(document, dict):
            return None
        for cluster in maps_at(document, "clusters"):
            cluster["cluster"]["proxy-url"] = self._proxy
        return write(self._directory / f"{namespace}.kubeconfig", dump(document))

    async def _simulate(self, namespace: str, kubeconfig: Path) -> None:
        if namespace not in self._kwoks:
            line = [str(self._program), *simulating(kubeconfig, _LEASE_SECONDS)]
            child = Child(f"kwok-{namespace}", line, self._directory, lambda: None)
            self._kwoks[namespace] = child
            await child.start()

    async def _stop(self, namespace: str) -> None:
        child = self._kwoks.pop(namespace, None)
        if child is not None:
            await child.stop()


async def _register(shoot: Client, name: str) -> None:
    """Create the Node that the kubelet of a machine would create."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if await shoot.find(NODE, Key("", name)) is None:
        spec = {"taints": [_NOT_READY]}
        await shoot.create(manifest("v1", "Node", name, labels=labels, spec=spec, status=_STATUS))


async def _configure(shoot: Client) -> None:
    """Report that all nodes have the current configuration of their worker pools."""
    secrets = await shoot.list(SECRET, _SYSTEM, labels=_CONFIGURATIONS, metadata_only=True)
    checksums = {labels_of(each).get(_POOL): annotations_of(each).get(_DESIRED) for each in secrets}
    for node in await shoot.list(NODE, metadata_only=True):
        desired = checksums.get(labels_of(node).get(_POOL))
        if desired and annotations_of(node).get(_APPLIED) != desired:
            patch: JsonObject = {"metadata": {"annotations": {_APPLIED: desired}}}
            await shoot.patch(NODE, Key.of(node), patch)


def machines_unit(client: Client, program: Path, directory: Path, proxy: str) -> Unit:
    """Return the unit that simulates the nodes of all Shoots of a Seed."""
    pods = Cache(client, POD, whole, labels=_LABELS)
    machines = Machines(client, pods, program, directory, proxy)
    return Controller(
        "machines",
        machines.reconcile,
        watches=[Watch(pods, to=_namespaces)],
        metrics=Metrics(),
        tasks=[machines.close_at_end],
    )


def _namespaces(change: Change[JsonObject]) -> Iterator[str]:
    yield change.key.namespace
