"""Status of nodes and pods for `pergola sandbox status`."""

from pathlib import Path
from typing import NamedTuple

from pergola.api.kinds import NODE, POD
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import load
from pergola.sandbox.errors import SandboxError


class NodeView(NamedTuple):
    """A node: its name, `Ready` or the reason why not, and the versions of kubelet and runtime."""

    name: str
    condition: str
    versions: str


class PodView(NamedTuple):
    """A pod: its key, its phase or the reason it waits, and its images."""

    key: Key
    state: str
    images: tuple[str, ...]


class Observed(NamedTuple):
    """The nodes and pods of a sandbox."""

    nodes: list[NodeView]
    pods: list[PodView]


async def observe(kubeconfig: Path) -> Observed:
    """Read all nodes and pods.

    Raises:
        SandboxError: the API server does not answer.
    """
    try:
        async with Client.connect(load(kubeconfig)) as client:
            nodes, pods = await client.list(NODE), await client.list(POD)
    except KubeError as error:
        raise SandboxError(f"the API server does not answer: {error}") from error
    return Observed([_node(node) for node in nodes], [_pod(pod) for pod in pods])


def _node(node: JsonObject) -> NodeView:
    info = map_at(node, "status", "nodeInfo")
    ready = next((c for c in maps_at(node, "status", "conditions") if c["type"] == "Ready"), {})
    condition = "Ready" if ready.get("status") == "True" else str(ready.get("message", "unknown"))
    versions = f"kubelet {info.get('kubeletVersion')}, {info.get('containerRuntimeVersion')}"
    return NodeView(name_of(node), condition, versions)


def _pod(pod: JsonObject) -> PodView:
    images = tuple(c["image"] for c in maps_at(pod, "spec", "containers"))
    waiting = [
        map_at(status, "state", "waiting").get("reason")
        for status in maps_at(pod, "status", "containerStatuses")
    ]
    reason = next((reason for reason in waiting if reason), None)
    return PodView(Key.of(pod), str(reason or map_at(pod, "status").get("phase")), images)
