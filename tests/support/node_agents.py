"""gardener-node-agent on simulated nodes: it updates them in place (spec 31 §1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from pergola.api.kinds import NODE
from pergola.api.objects import JsonObject, Key, labels_of, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change

SELECTED: Final = "node.machine.sapcloud.io/selected-for-update"
"""The label by which a node is chosen for its update."""
_RESULT: Final = "node.machine.sapcloud.io/update-result"
_CONDITION: Final = "InPlaceUpdate"
_DRAINED: Final = "ReadyForUpdate"


@asynccontextmanager
async def node_agents(client: Client, result: str = "successful") -> AsyncGenerator[None]:
    """Update nodes once machine-controller-manager has drained them, as their agents do.

    Args:
        result: of each update, `successful` or `failed`.
    """
    nodes = Cache(client, NODE, _is_due)
    waiting: asyncio.Queue[Key] = asyncio.Queue()

    def on_node(change: Change[bool]) -> None:
        if change.new and not change.old:
            waiting.put_nowait(change.key)

    async def update() -> None:
        while True:
            patch = {"metadata": {"labels": {_RESULT: result}}}
            with suppress(NotFound):
                await client.patch(NODE, await waiting.get(), patch)

    nodes.subscribe(on_node)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(nodes.run()), group.create_task(update())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _is_due(node: JsonObject) -> bool:
    is_drained = any(
        (each.get("type"), each.get("reason")) == (_CONDITION, _DRAINED)
        for each in maps_at(node, "status", "conditions")
    )
    return is_drained and _RESULT not in labels_of(node)
