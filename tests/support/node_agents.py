"""What runs on nodes while they are updated in place (spec 31 §1), where kwok simulates nodes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from pergola.api.kinds import NODE
from pergola.api.objects import JsonObject, Key, labels_of, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change

_RESULT: Final = "node.machine.sapcloud.io/update-result"
_REASON: Final = "node.machine.sapcloud.io/update-failed-reason"
_CONDITION: Final = "InPlaceUpdate"
_DRAINED: Final = "ReadyForUpdate"
_NOT_READY: Final = "node.gardener.cloud/critical-components-not-ready"


class _State(NamedTuple):
    """What is to be done on a node.

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
    result = "failed" if failure else "successful"
    updated = {"labels": {_RESULT: result}, "annotations": {_REASON: failure}}
    nodes = Cache(client, NODE, _read)
    waiting: asyncio.Queue[tuple[Key, _State]] = asyncio.Queue()

    def on_node(change: Change[_State]) -> None:
        if change.new is not None and change.new != change.old and any(change.new):
            waiting.put_nowait((change.key, change.new))

    async def act() -> None:
        while True:
            key, state = await waiting.get()
            patch: JsonObject = {}
            if state.is_drained:
                patch["metadata"] = updated
            if state.is_new:
                patch["spec"] = {"taints": []}
            with suppress(NotFound):
                await client.patch(NODE, key, patch)

    nodes.subscribe(on_node)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(nodes.run()), group.create_task(act())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _read(node: JsonObject) -> _State:
    is_drained = any(
        (each.get("type"), each.get("reason")) == (_CONDITION, _DRAINED)
        for each in maps_at(node, "status", "conditions")
    )
    is_new = any(each.get("key") == _NOT_READY for each in maps_at(node, "spec", "taints"))
    return _State(is_drained and _RESULT not in labels_of(node), is_new)
