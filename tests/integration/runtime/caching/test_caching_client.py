"""A client that reads from replicas observes its own writes, and asks the server when in doubt."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, name_of
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, Conflict, NotFound
from pergola.kube.states import watched
from pergola.runtime.caching.client import CachingClient
from pergola.runtime.caching.replica import Replica
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import config_map

MISSING = GroupVersionKind("example.org", "v1", "Missing")


class CountingClient(Client):
    """A client that counts its reads."""

    reads = 0

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        self.reads += 1
        return await super().get(gvk, key, metadata_only=metadata_only)

    async def list(self, gvk: GroupVersionKind, *args: Any, **options: Any) -> list[JsonObject]:
        self.reads += 1
        return await super().list(gvk, *args, **options)


class Place(NamedTuple):
    """A namespace, a client that counts, and one that reads from a replica of its ConfigMaps."""

    namespace: str
    live: CountingClient
    client: CachingClient
    replica: Replica

    def named(self, name: str) -> Key:
        return Key(self.namespace, name)

    def config_map(self, name: str, **data: str) -> JsonObject:
        return config_map(name, self.namespace, labels={"name": name}, **data)

    async def find(self, name: str, **options: bool) -> JsonObject | None:
        return await self.client.find(CONFIG_MAP, self.named(name), **options)


@asynccontextmanager
async def following(replica: Replica) -> AsyncIterator[None]:
    task = asyncio.create_task(replica.cache.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await replica.cache.synced()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def client(cluster_client: Client) -> Client:
    """Yield an administrator's client, which reads and writes as other clients do."""
    return cluster_client


@pytest.fixture
async def place(client: Client, namespace: str) -> AsyncIterator[Place]:
    live = CountingClient(client._transport)  # share the connections
    await client.create(config_map("before", namespace, labels={"name": "before"}, key="old"))
    replica = Replica(live, CONFIG_MAP, namespace)
    async with following(replica):
        yield Place(namespace, live, CachingClient(live, [replica]), replica)


async def test_reads_of_replicated_objects_cause_no_requests(place: Place) -> None:
    found = await place.find("before")
    assert found == await Client.find(place.live, CONFIG_MAP, place.named("before"))
    place.live.reads = 0
    assert await place.find("absent") is None
    with pytest.raises(NotFound, match="absent"):
        await place.client.get(CONFIG_MAP, place.named("absent"))
    assert (await place.find("before", metadata_only=True) or {}).keys() == {
        "apiVersion",
        "kind",
        "metadata",
    }
    listed = await place.client.list(CONFIG_MAP, place.namespace, labels="name=before")
    assert [name_of(obj) for obj in listed] == ["before"]
    assert place.live.reads == 0


async def test_a_reader_may_modify_the_returned_object(place: Place) -> None:
    found = await place.find("before") or {}
    found["data"]["key"] = "changed"
    assert (await place.find("before") or {})["data"] == {"key": "old"}


async def test_own_writes_are_visible_without_a_request(place: Place) -> None:
    await place.client.create(place.config_map("new", key="1"))
    assert (await place.find("new") or {})["data"] == {"key": "1"}
    await place.client.patch(CONFIG_MAP, place.named("new"), {"data": {"key": "2"}})
    found = await place.find("new") or {}
    assert found["data"] == {"key": "2"}
    await place.client.update({**found, "data": {"key": "3"}})
    assert (await place.find("new") or {})["data"] == {"key": "3"}
    applied = {**place.config_map("new", key="4"), "apiVersion": "v1", "kind": "ConfigMap"}
    await place.client.apply(applied, manager="test", force=True)
    assert (await place.find("new") or {})["data"] == {"key": "4"}
    assert place.live.reads == 0


async def test_a_deleted_object_is_not_found(place: Place) -> None:
    for _ in range(20):
        await place.client.delete(CONFIG_MAP, place.named("before"))
        assert await place.find("before") is None
        await place.client.create(place.config_map("before"))
        assert await place.find("before") is not None


async def test_an_object_that_waits_for_finalizers_is_read_with_its_deletion_timestamp(
    place: Place,
) -> None:
    held = place.config_map("held")
    held["metadata"]["finalizers"] = ["example.org/test"]
    await place.client.create(held)
    await place.client.delete(CONFIG_MAP, place.named("held"))
    assert "deletionTimestamp" in (await place.find("held") or {})["metadata"]
    free = {"metadata": {"finalizers": None}}
    await place.client.patch(CONFIG_MAP, place.named("held"), free)
    async with asyncio.timeout(PATIENCE):
        while await place.find("held") is not None:
            await place.client.get_raw("/version")


async def test_an_object_is_read_from_the_server_after_a_conflict(
    place: Place, client: Client
) -> None:
    stale = await place.find("before") or {}
    key = place.named("before")
    written = await client.patch(CONFIG_MAP, key, {"data": {"key": "theirs"}})
    with pytest.raises(Conflict):
        await place.client.update({**stale, "data": {"key": "ours"}})
    assert await place.find("before") == written


async def test_an_object_is_read_from_the_server_if_another_client_created_it_first(
    place: Place, client: Client
) -> None:
    written = await client.create(place.config_map("theirs", key="theirs"))
    with pytest.raises(AlreadyExists):
        await place.client.create(place.config_map("theirs", key="ours"))
    assert await place.find("theirs") == written


async def test_a_dry_run_does_not_change_the_replica(place: Place) -> None:
    await place.client.create(place.config_map("never"), dry_run=True)
    assert await place.find("never") is None


async def test_an_answer_that_is_older_than_a_deletion_is_discarded(
    place: Place, client: Client
) -> None:
    created = await client.create(place.config_map("brief"))
    await client.delete(CONFIG_MAP, place.named("brief"))
    last = await client.create(place.config_map("last"))
    async with asyncio.timeout(PATIENCE):
        while place.replica.get(Key.of(last)) is None:
            await client.get_raw("/version")
    place.replica.settle(place.named("brief"), created)
    assert await place.find("brief") is None


async def test_states_come_from_the_replica(place: Place, client: Client) -> None:
    key = place.named("before")
    watching = watched(place.client, CONFIG_MAP, key, 1.0)
    async with asyncio.timeout(PATIENCE), aclosing(watching) as seen:
        states = aiter(seen)
        assert ((await anext(states)) or {})["data"] == {"key": "old"}
        await client.patch(CONFIG_MAP, key, {"data": {"key": "new"}})
        assert ((await anext(states)) or {})["data"] == {"key": "new"}
        await client.delete(CONFIG_MAP, key)
        assert await anext(states) is None
    assert place.live.reads == 0


async def test_replicas_of_metadata_only_answer_reads_of_metadata(
    client: Client, namespace: str
) -> None:
    await client.create(config_map("big", namespace, labels={"a": "b"}, key="value"))
    live = CountingClient(client._transport)
    replica = Replica(live, CONFIG_MAP, namespace, metadata_only=True)
    copied, key = CachingClient(live, [replica]), Key(namespace, "big")
    async with following(replica):
        found = await copied.find(CONFIG_MAP, key, metadata_only=True)
        assert labels_of(found or {}) == {"a": "b"}
        assert live.reads == 0
        assert ((await copied.find(CONFIG_MAP, key)) or {})["data"] == {"key": "value"}
        assert live.reads == 1
        assert copied.follow(CONFIG_MAP, key) is None


async def test_without_a_live_watch_objects_are_read_from_the_server(
    client: Client, namespace: str
) -> None:
    await client.create(config_map("there", namespace, key="value"))
    replica = Replica(client, CONFIG_MAP, namespace)
    copied = CachingClient(client, [replica])
    assert await copied.find(CONFIG_MAP, Key(namespace, "there")) is not None
    assert copied.follow(CONFIG_MAP, Key(namespace, "there")) is None


async def test_live_reads_cause_requests(place: Place) -> None:
    await place.client.live.list(CONFIG_MAP, place.namespace)
    assert place.live.reads == 1


async def test_a_guard_prevents_writes_of_a_client_with_replicas(place: Place) -> None:
    def forbid() -> None:
        raise LookupError

    guarded = place.client.guarded(forbid)
    with pytest.raises(LookupError):
        await guarded.create(place.config_map("never"))
    assert await guarded.find(CONFIG_MAP, place.named("before")) is not None
    assert place.live.reads == 0
