"""Caches survive every end of a watch, and notify subscribers only of differences."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pergola.api.kinds import CONFIG_MAP, CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import load
from pergola.runtime.caching.cache import Cache, Change
from pergola.testing.crds import definition
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import config_map

MINE = "test=mine"


def keep_data(obj: JsonObject) -> JsonObject:
    """Return the data, which the caches of these tests keep."""
    data: JsonObject = obj.get("data") or {}
    return data


class Log:
    """The notifications of a subscriber, with a method that waits for them."""

    def __init__(self) -> None:
        self.changes: list[Change[JsonObject]] = []
        self._notified = asyncio.Event()

    def __call__(self, change: Change[JsonObject]) -> None:
        self.changes.append(change)
        self._notified.set()

    async def until(self, count: int) -> list[Change[JsonObject]]:
        """Wait for this many notifications."""
        async with asyncio.timeout(PATIENCE):
            while len(self.changes) < count:
                self._notified.clear()
                await self._notified.wait()
        return self.changes


@asynccontextmanager
async def running(cache: Cache[JsonObject]) -> AsyncIterator[Log]:
    """Run a cache, and record its changes."""
    log = Log()
    cache.subscribe(log)
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await cache.synced()
        yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def mine(name: str, namespace: str, **data: str) -> JsonObject:
    """Return a ConfigMap with the tests' label."""
    return config_map(name, namespace, labels={"test": "mine"}, **data)


async def test_a_cache_knows_whether_it_lags_behind_the_server(
    cluster_client: Client, namespace: str
) -> None:
    cache = Cache(cluster_client, CONFIG_MAP, keep_data, namespace=namespace, labels=MINE)
    assert not await cache.is_behind()
    async with running(cache) as log:
        await cluster_client.create(mine("a", namespace))
        await log.until(1)
        assert not await cache.is_behind()

    await cluster_client.patch(CONFIG_MAP, Key(namespace, "a"), {"data": {"x": "1"}})
    assert await cache.is_behind()
    await cluster_client.delete(CONFIG_MAP, Key(namespace, "a"))
    assert await cache.is_behind()


async def test_a_cache_of_an_unserved_kind_never_lags_behind(
    cluster_client: Client,
) -> None:
    unserved = GroupVersionKind("unserved.example.org", "v1", "Gadget")

    assert not await Cache(cluster_client, unserved, keep_data).is_behind()


async def test_a_cache_lists_and_then_watches_objects(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(mine("a", namespace, x="1"))
    cache = Cache(cluster_client, CONFIG_MAP, keep_data, namespace=namespace, labels=MINE)
    async with running(cache) as log:
        assert [(c.key.name, c.new, c.initial) for c in log.changes] == [("a", {"x": "1"}, True)]
        await cluster_client.patch(CONFIG_MAP, Key(namespace, "a"), {"data": {"x": "2"}})
        await cluster_client.create(mine("b", namespace))
        await cluster_client.delete(CONFIG_MAP, Key(namespace, "a"))
        changes = await log.until(4)
    assert [(c.key.name, c.old, c.new) for c in changes[1:]] == [
        ("a", {"x": "1"}, {"x": "2"}),
        ("b", None, {}),
        ("a", {"x": "2"}, None),
    ]
    assert len(cache) == 1


async def test_an_object_that_loses_the_label_is_removed_from_the_cache(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(mine("a", namespace))
    cache = Cache(cluster_client, CONFIG_MAP, keep_data, namespace=namespace, labels=MINE)
    async with running(cache) as log:
        await cluster_client.patch(
            CONFIG_MAP, Key(namespace, "a"), {"metadata": {"labels": {"test": None}}}
        )
        changes = await log.until(2)
    assert changes[1].new is None


async def test_an_observed_write_is_visible_at_once_and_notified_once(
    cluster_client: Client, namespace: str
) -> None:
    cache = Cache(cluster_client, CONFIG_MAP, keep_data, namespace=namespace, labels=MINE)
    async with running(cache) as log:
        cache.observe(await cluster_client.create(mine("a", namespace, x="1")))
        assert cache.get(Key(namespace, "a")) == {"x": "1"}
        await cluster_client.create(mine("b", namespace))
        changes = await log.until(2)
    assert [c.key.name for c in changes] == ["a", "b"]


async def test_the_cache_of_an_unserved_kind_is_empty_until_the_kind_is_served(
    cluster_client: Client, namespace: str
) -> None:
    group = f"{namespace}.example.org"
    gadget = GroupVersionKind(group, "v1", "Gadget")
    cache = Cache(cluster_client, gadget, keep_data)
    async with running(cache) as log:
        assert cache.is_synced
        assert len(cache) == 0
        await cluster_client.create(definition(gadget))
        async with asyncio.timeout(PATIENCE):
            while not cache.served:
                cluster_client.discovery.forget(gadget)
                cache.wake()
                await cluster_client.get_raw("/version")
        await cluster_client.create(
            {
                "apiVersion": gadget.api_version,
                "kind": "Gadget",
                "metadata": {"name": "g", "namespace": namespace},
                "data": {"x": "1"},
            }
        )
        await log.until(1)
        await cluster_client.delete(CRD, Key("", f"gadgets.{group}"))
        changes = await log.until(2)
    assert [(c.old, c.new) for c in changes] == [(None, {"x": "1"}), ({"x": "1"}, None)]


async def test_the_cache_of_a_kind_is_empty_even_if_discovery_still_lists_it(
    cluster_client: Client, kubeconfig: Path, namespace: str
) -> None:
    group = f"{namespace}.example.org"
    widget = GroupVersionKind(group, "v1", "Widget")
    await cluster_client.create(definition(widget))
    async with Client.connect(load(kubeconfig)) as client, asyncio.timeout(PATIENCE):
        while not await is_served(client, widget):
            client.discovery.forget(widget)
        await cluster_client.delete(CRD, Key("", f"widgets.{group}"))
        while await is_served(client, widget):
            await cluster_client.get_raw("/version")
        await client.resource(widget)  # the remembered resource is wrong by now
        async with running(Cache(client, widget, keep_data)):
            pass


async def is_served(client: Client, gvk: GroupVersionKind) -> bool:
    try:
        resource = await client.resource(gvk)
        await client.get_raw(resource.collection())
    except KubeError:
        return False
    return True
