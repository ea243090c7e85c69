import asyncio
from typing import cast

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.process.sharding.drain import drainer
from pergola.runtime.process.sharding.flights import Flights
from pergola.runtime.process.sharding.ring import Share

pytestmark = pytest.mark.looptime

SHARE = Share("widgets", "shard-a")
KEY = Key("demo", "first")
MINE = {SHARE.shard_label: "shard-a", "app": "web"}
DRAINED = {**MINE, SHARE.drain_label: ""}


class Server:
    """A server with one object, which records writes."""

    def __init__(self, labels: JsonObject | None) -> None:
        self.labels = labels
        self.patches: list[JsonObject] = []

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        assert (gvk, key, metadata_only) == (CONFIG_MAP, KEY, True)
        if self.labels is None:
            raise NotFound(404, {})
        return {"metadata": {"name": key.name, "resourceVersion": "7", "labels": self.labels}}

    async def patch(self, gvk: GroupVersionKind, key: Key, body: JsonObject) -> JsonObject:
        self.patches.append(body)
        return body


def drain(server: Server, flights: Flights[Key]) -> asyncio.Future[Outcome]:
    reconcile = drainer(cast("Client", server), CONFIG_MAP, SHARE, flights)
    return asyncio.ensure_future(reconcile(KEY))


async def test_both_labels_are_removed_in_one_write_with_the_resource_version() -> None:
    server = Server(DRAINED)

    await drain(server, Flights(lambda _: False))

    labels = {
        "shard.alpha.sharding.timebertt.dev/widgets": None,
        "drain.alpha.sharding.timebertt.dev/widgets": None,
    }
    assert server.patches == [{"metadata": {"resourceVersion": "7", "labels": labels}}]


async def test_an_object_is_not_released_while_it_is_reconciled() -> None:
    server, may_end = Server(DRAINED), asyncio.Event()
    flights = Flights[Key](lambda _: True)

    async def work(_: Key) -> Outcome:
        await may_end.wait()
        return DONE

    run = asyncio.create_task(flights.tracked(work)(KEY))
    await asyncio.sleep(1)
    draining = drain(server, flights)
    await asyncio.sleep(3600)
    assert server.patches == []

    may_end.set()
    await draining

    assert len(server.patches) == 1
    await run


@pytest.mark.parametrize("labels", [MINE, {**DRAINED, SHARE.shard_label: "shard-b"}, {}, None])
async def test_an_object_that_is_no_longer_drained_is_not_changed(
    labels: JsonObject | None,
) -> None:
    server = Server(labels)

    await drain(server, Flights(lambda _: False))

    assert server.patches == []
