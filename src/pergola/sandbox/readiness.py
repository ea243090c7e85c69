"""Readiness of a sandbox: the API server answers, nodes are ready, controllers work."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from pergola.api.kinds import DEPLOYMENT, NODE, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import load
from pergola.sandbox import control
from pergola.sandbox.errors import SandboxError

_ZONES: Final = ("a", "b", "c")
_LIMIT: Final = 90.0
_INTERVAL: Final = 0.05
_HOPELESS: Final = 3  # failures of one component
_LOG_TAIL: Final = 600  # characters


class Readiness:
    """The readiness checks of one sandbox.

    Args:
        directory: the sandbox's directory.
        kubeconfig: the administrator's kubeconfig.
    """

    def __init__(self, directory: Path, kubeconfig: Path) -> None:
        self._directory = directory
        self._kubeconfig = kubeconfig

    async def of_apiserver(self) -> None:
        """Wait until the API server is ready and has created its own objects."""
        async with self._client() as client:
            await self._until(lambda: _serves(client), "the API server to be ready")

    async def of_nodes(self) -> None:
        """Create three nodes in three zones, and wait until they accept pods."""
        async with self._client() as client:
            for zone in _ZONES:
                await client.create(_node(zone))
            await self._until(lambda: _nodes_are_ready(client), "the simulated nodes to be ready")

    async def of_node(self) -> None:
        """Wait until the real node accepts pods."""
        async with self._client() as client:
            await self._until(lambda: _nodes_are_ready(client), "the node to be ready")

    async def of_objects(self, objects: Iterable[JsonObject]) -> None:
        """Create objects in the given order."""
        async with self._client() as client:
            for obj in objects:
                await client.create(obj)

    async def of_deployments(self, keys: Iterable[Key]) -> None:
        """Wait until all replicas of the Deployments are available."""
        async with self._client() as client:
            for key in keys:
                check = partial(_is_available, client, key)
                await self._until(check, f"Deployment {key} to be available")

    async def of_path(self, path: str, what: str) -> None:
        """Wait until the API server answers a GET of this path without an error."""
        async with self._client() as client:
            await self._until(lambda: _answers(client, path), what)

    async def of_socket(self, path: Path) -> None:
        """Wait until a server accepts connections on a Unix socket."""

        async def connects() -> bool:
            try:
                _, writer = await asyncio.open_unix_connection(str(path))
            except OSError:
                return False
            writer.close()
            return True

        await self._until(connects, f"{path.name} to accept connections")

    async def of_controllers(self) -> None:
        """Wait until the default service account shows that controllers work."""
        key = Key("default", "default")
        async with self._client() as client:
            await self._until(
                lambda: _exists(client, SERVICE_ACCOUNT, key), "the controllers to start"
            )

    def _client(self) -> Client:
        return Client.connect(load(self._kubeconfig))

    async def _until(self, check: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(_LIMIT):
                while not await _holds(check):
                    await self._check_components()
                    await asyncio.sleep(_INTERVAL)
        except TimeoutError as error:
            raise SandboxError(
                f"gave up after waiting {_LIMIT:.0f} seconds for {what}; is the machine overloaded?"
            ) from error

    async def _check_components(self) -> None:
        state = await control.command(self._directory, "status")
        for component, child in state["components"].items():
            if child["failures"] >= _HOPELESS:
                log = self._directory / f"{component}.log"
                tail = log.read_text(errors="replace")[-_LOG_TAIL:].strip()
                raise SandboxError(f"{component} does not stay up; its log ends with:\n{tail}")


async def _holds(check: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await check()
    except KubeError:
        return False


async def _serves(client: Client) -> bool:
    return await client.get_raw("/readyz") == b"ok"


async def _answers(client: Client, path: str) -> bool:
    await client.get_raw(path)
    return True


async def _exists(client: Client, gvk: GroupVersionKind, key: Key) -> bool:
    await client.get(gvk, key)
    return True


async def _nodes_are_ready(client: Client) -> bool:
    nodes = await client.list(NODE)
    return bool(nodes) and all(_is_schedulable(node) for node in nodes)


async def _is_available(client: Client, key: Key) -> bool:
    status = map_at(await client.get(DEPLOYMENT, key), "status")
    return bool(status.get("availableReplicas") == status.get("replicas", 1))


def _is_schedulable(node: JsonObject) -> bool:
    conditions = {c.get("type"): c.get("status") for c in maps_at(node, "status", "conditions")}
    return conditions.get("Ready") == "True" and not map_at(node, "spec").get("taints")


def _node(zone: str) -> JsonObject:
    name = f"node-{zone}"
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": f"local-{zone}",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
