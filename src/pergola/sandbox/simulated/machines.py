"""Nodes of Shoots for the machines that machine-controller-manager makes.

Nothing runs in a machine: those of provider-local are pods that kwok simulates in the cluster of
the Seed, and those of AWS are instances of a simulated account. So kwok also simulates the
kubelets, in the clusters of the Shoots; `shoot_nodes` does the rest of their work.
"""

import asyncio
import base64
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.kinds import MACHINE, NODE, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    map_at,
    maps_at,
    metadata_of,
)
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.pki.authorities import Authority
from pergola.pki.keys import Pair
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.child import Child
from pergola.sandbox.components import simulating
from pergola.sandbox.directory import write
from pergola.sandbox.late_kinds import late_caches
from pergola.sandbox.simulated.shoot_nodes import joining, register, report

_ACCESS: Final = "gardener-internal"
_AUTHORITIES: Final = "managed-by=secrets-manager,manager-identity=gardenlet,name=ca-kubelet"
_ADDRESS: Final = "127.0.0.1"
_LIFETIME: Final = timedelta(days=1)
_RETRY: Final = 5.0
_AGENT_SECONDS: Final = 5.0
_LEASE_SECONDS: Final = 40


class _Kwok(NamedTuple):
    """The kubelet of a Shoot's nodes."""

    child: Child
    port: int


class Machines:
    """A reconciler of the machines of one Shoot: a kwok, and a Node for each of them.

    Args:
        client: of the Seed.
        machines: those of all Shoots.
        program: kwok.
        directory: for files and logs.
        proxy: of the Seed's node.
    """

    def __init__(
        self,
        client: Client,
        machines: Cache[JsonObject],
        program: Path,
        directory: Path,
        proxy: str,
    ) -> None:
        self._client = client
        self._machines = machines
        self._program = program
        self._directory = directory
        self._proxy = proxy
        self._kwoks: dict[str, _Kwok] = {}

    async def reconcile(self, namespace: str) -> Outcome:
        """Simulate the nodes of the machines in a namespace, or stop if there are none."""
        keys = [key for key, _ in self._machines.items() if key.namespace == namespace]
        if not keys:
            await self._stop(namespace)
            return DONE
        kubeconfig, authority = await self._access(namespace), await self._authority(namespace)
        if kubeconfig is None or authority is None:
            return Again(_RETRY)
        port = await self._simulate(namespace, kubeconfig, authority)
        async with Client.connect(load(kubeconfig)) as shoot:
            for key in keys:
                # machine-controller-manager deletes the Node of a machine while this runs.
                node = joining(self._machines.get(key))
                if node is not None and await shoot.find(NODE, Key.of(node)) is None:
                    await register(shoot, node)
            await report(shoot, port)
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
        key = Key(namespace, _ACCESS)
        secret = await self._client.find(SECRET, key)
        content = map_at(secret or {}, "data").get("kubeconfig")
        document = parse(base64.b64decode(content)) if content else None
        if not isinstance(document, dict):
            return None
        for cluster in maps_at(document, "clusters"):
            cluster["cluster"]["proxy-url"] = self._proxy
        return await self._written(namespace, "kubeconfig", dump(document))

    async def _written(self, namespace: str, name: str, text: str) -> Path:
        """Write a file that kwok reads when it starts; stop it if the file changes."""
        file = self._directory / f"{namespace}.{name}"
        if not file.exists() or await asyncio.to_thread(file.read_text) != text:
            await self._stop(namespace)
            write(file, text)
        return file

    async def _authority(self, namespace: str) -> Pair | None:
        """Return the newest authority for certificates of kubelets."""
        found = await self._client.list(SECRET, namespace, labels=_AUTHORITIES)
        if not found:
            return None
        *_, newest = sorted(found, key=_created)
        data = map_at(newest, "data")
        pair = Pair(base64.b64decode(data["ca.crt"]), base64.b64decode(data["ca.key"]))
        await self._written(namespace, "kubelets-ca", pair.public.decode())
        return pair

    async def _simulate(self, namespace: str, kubeconfig: Path, authority: Pair) -> int:
        """Run kwok as the kubelet of all nodes, and return its port."""
        if (running := self._kwoks.get(namespace)) is not None:
            return running.port
        issued = Authority(authority).issue_server(
            "kubelets", (_ADDRESS,), datetime.now(UTC), _LIFETIME
        )
        certificate = write(self._directory / f"{namespace}.kubelets.crt", issued.public)
        key = write(self._directory / f"{namespace}.kubelets.key", issued.private)
        port = _free_port()
        line = [
            str(self._program),
            *simulating(kubeconfig, _LEASE_SECONDS),
            f"--node-port={port}",
            f"--server-address={_ADDRESS}:{port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
        ]
        child = Child(f"kwok-{namespace}", line, self._directory, lambda: None)
        self._kwoks[namespace] = _Kwok(child, port)
        await child.start()
        return port

    async def _stop(self, namespace: str) -> None:
        kwok = self._kwoks.pop(namespace, None)
        if kwok is not None:
            await kwok.child.stop()


def _created(secret: JsonObject) -> str:
    return str(metadata_of(secret)["creationTimestamp"])


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind((_ADDRESS, 0))
        return int(chosen.getsockname()[1])


def machines_unit(client: Client, program: Path, directory: Path, proxy: str) -> Unit:
    """Return the unit that simulates the nodes of all Shoots of a Seed."""
    definitions, caches = late_caches(client, [MACHINE])
    machines = Machines(client, caches[MACHINE], program, directory, proxy)
    return Controller(
        "machines",
        machines.reconcile,
        watches=[Watch(caches[MACHINE], to=_namespaces)],
        metrics=Metrics(),
        caches=[definitions, caches[MACHINE]],
        tasks=[machines.close_at_end],
    )


def _namespaces(change: Change[JsonObject]) -> Iterator[str]:
    yield change.key.namespace
