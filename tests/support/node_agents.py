"""Simulated gardener-node-agents, which update nodes in place (spec 31 §1)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from pergola.api.kinds import NODE
from pergola.api.objects import JsonObject, Key, labels_of, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change
from tests.support.reactions import reacting

_RESULT: Final = "node.machine.sapcloud.io/update-result"
_REASON: Final = "node.machine.sapcloud.io/update-failed-reason"
_CONDITION: Final = "InPlaceUpdate"
_DRAINED: Final = "ReadyForUpdate"
_NOT_READY: Final = "node.gardener.cloud/critical-components-not-ready"


class _State(NamedTuple):
    """The state of a node, as far as a simulated program must react.

    Attributes:
        is_drained: whether machine-controller-manager waits for the update.
        is_new: whether it has the taint that lasts until its critical pods run.
    """

    is_drained: bool
    is_new: bool


@asynccontextmanager
async def node_agents(client: Client, *, failure: str = "") -> AsyncGenerator[None]:
    """Update nodes that are drained, as gardener-node-agent does, and run their critical pods.

    Args:
        failure: why each update fails; empty if it does not.
    """
    labels = {_RESULT: "failed" if failure else "successful"}
    # A merge patch with None removes the annotation of an earlier failure.
    updated: JsonObject = {"labels": labels, "annotations": {_REASON: failure or None}}

    def due(change: Change[_State]) -> tuple[Key, _State] | None:
        new = change.new
        return (change.key, new) if new is not None and new != change.old and any(new) else None

    async def act(node: tuple[Key, _State]) -> None:
        key, state = node
        patch: JsonObject = {}
        if state.is_drained:
            patch["metadata"] = updated
        if state.is_new:
            patch["spec"] = {"taints": []}
        with suppress(NotFound):
            await client.patch(NODE, key, patch)

    async with reacting(Cache(client, NODE, _read), due, act):
        yield


def _read(node: JsonObject) -> _State:
    is_drained = any(
        (each.get("type"), each.get("reason")) == (_CONDITION, _DRAINED)
        for each in maps_at(node, "status", "conditions")
    )
    is_new = any(each.get("key") == _NOT_READY for each in maps_at(node, "spec", "taints"))
    return _State(is_drained and _RESULT not in labels_of(node), is_new)
