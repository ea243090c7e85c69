"""The real machine-controller-manager, and nodes for its machines.

Its driver for AWS is a stand-in of our own; see `pergola.sandbox.on_demand.MACHINES`.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from pergola.api.kinds import MACHINE, NODE
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    map_at,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.yaml import parse
from pergola.runtime.caching.cache import Cache, Change
from pergola.sandbox import binaries
from pergola.sandbox.aws.environment import variables
from pergola.sandbox.on_demand import (
    MACHINE_CONTROLLER_AWS,
    MACHINE_CONTROLLER_MANAGER,
    MACHINE_CRDS,
)
from pergola.testing.crds import serve
from tests.support.ports import held_port
from tests.support.reactions import reacting

NODE_LABEL: Final = "node"
_COMMON: Final = ("--kube-api-qps=150", "--kube-api-burst=200", "--leader-elect=false", "--v=3")


class MachineControllers:
    """machine-controller-manager and its driver, as processes for one namespace.

    Args:
        folder: for their logs.
        kubeconfig: of the seed, which is the Shoot, too.
        endpoint: of the simulated AWS.
    """

    def __init__(self, folder: Path, kubeconfig: Path, namespace: str, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._arguments = (
            f"--control-kubeconfig={kubeconfig}",
            f"--target-kubeconfig={kubeconfig}",
            f"--namespace={namespace}",
            *_COMMON,
        )
        self._running: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        """Start both."""
        await self._start(
            MACHINE_CONTROLLER_MANAGER,
            "--safety-up=2",
            "--safety-down=1",
            "--machine-safety-overshooting-period=1m",
        )
        await self._start(
            MACHINE_CONTROLLER_AWS,
            "--machine-drain-timeout=10s",
            "--resource-exhausted-retry=1s",
        )

    async def restart(self) -> None:
        """Let both look at everything again: they pause for minutes after some errors."""
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        """Kill both."""
        for process in self._running:
            process.kill()
            await process.wait()
        self._running.clear()

    async def _start(self, name: str, *more: str) -> None:
        program = (await asyncio.to_thread(binaries.find, (name,)))[name]
        with held_port() as port, (self._folder / f"{name}.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *self._arguments,
                *more,
                f"--port={port}",
                stdout=output,
                stderr=output,
                env={
                    **{k: v for k, v in os.environ.items() if k != "KUBERNETES_SERVICE_HOST"},
                    **variables(self._endpoint),
                },
            )
        self._running.append(process)


async def serve_machines(client: Client) -> None:
    """Install machine-controller-manager's CustomResourceDefinitions."""
    folder = (await asyncio.to_thread(binaries.find, (MACHINE_CRDS,)))[MACHINE_CRDS]
    definitions = [parse(path.read_bytes()) for path in sorted(folder.glob("*.yaml"))]
    assert len(definitions) == 4
    await serve(client, *(each for each in definitions if isinstance(each, dict)))


@asynccontextmanager
async def joining_nodes(client: Client, namespace: str) -> AsyncGenerator[None]:
    """Register a node for each machine that started, as its kubelet would; kwok keeps it ready."""
    machines = Cache(client, MACHINE, _joining, namespace=namespace)
    joined: set[Key] = set()

    def due(change: Change[JsonObject | None]) -> JsonObject | None:
        return change.new if change.old is None else None

    async def register(node: JsonObject) -> None:
        joined.add(Key.of(node))
        with suppress(AlreadyExists):
            await client.create(node)

    try:
        async with reacting(machines, due, register):
            yield
    finally:
        # Addresses, and with them names of nodes, are the same in each simulated AWS. An instance
        # whose node exists already is replaced: when the next test begins, they must be gone.
        for key in joined:
            with suppress(NotFound):
                await client.delete(NODE, key)
                # An object that is being deleted accepts no new finalizers.
                await client.patch(NODE, key, {"metadata": {"finalizers": None}})


@asynccontextmanager
async def hurried_deletions(client: Client, namespace: str) -> AsyncGenerator[None]:
    """Let the driver take each step of a deletion at once.

    It pauses for five seconds after each of six steps, unless the spec of the Machine changes. Here
    a field changes that it does not read.
    """
    machines = Cache(client, MACHINE, _last_step, namespace=namespace)

    def due(change: Change[_Step]) -> tuple[Key, str] | None:
        new, old = change.new, change.old
        if new is not None and new.text and (old is None or old.text != new.text):
            return change.key, new.version
        return None

    async def hurry(step: tuple[Key, str]) -> None:
        key, version = step
        with suppress(NotFound):
            patch = {"spec": {"class": {"apiGroup": f"seen-{version}"}}}
            await client.patch(MACHINE, key, patch)

    async with reacting(machines, due, hurry):
        yield


class _Step(NamedTuple):
    """The last step of a Machine's deletion.

    Attributes:
        version: of the Machine after it.
        text: what the driver said; empty for a Machine that is not being deleted.
    """

    version: str
    text: str


def _last_step(machine: JsonObject) -> _Step:
    text = ""
    if deletion_timestamp_of(machine) is not None:
        text = str(map_at(machine, "status", "lastOperation").get("description") or "")
    return _Step(resource_version_of(machine), text)


def _joining(machine: JsonObject) -> JsonObject | None:
    """Return the Node of a Machine; None while its instance does not run."""
    name, spec = labels_of(machine).get(NODE_LABEL), map_at(machine, "spec")
    if not name or not spec.get("providerID"):
        return None
    labels = map_at(spec, "nodeTemplate", "metadata", "labels")
    return {
        "apiVersion": "v1",
        "kind": NODE.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": spec["providerID"]},
    }
