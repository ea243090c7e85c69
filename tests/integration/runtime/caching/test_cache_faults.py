"""Network failures between caches and the API server: nothing is lost or notified twice."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, name_of, uid_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.caching.cache import Cache, Change
from pergola.testing.crds import install_crds
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import RecordingClient, World, config_map, is_ready
from tests.support.proxy import CuttableProxy

MINE = "test=mine"


@pytest.fixture
async def proxy(kubeconfig: Path) -> AsyncIterator[CuttableProxy]:
    """Yield a proxy to the API server that tests disturb."""
    async with CuttableProxy(load(kubeconfig)) as proxy:
        yield proxy


@pytest.fixture
async def far_client(proxy: CuttableProxy) -> AsyncIterator[Client]:
    """Yield a client behind the proxy, unlike `cluster_client`."""
    async with Client.connect(proxy.config) as client:
        yield client


class Notified:
    """The notifications of a subscriber, with a method that waits for one about an object."""

    def __init__(self) -> None:
        self.changes: list[Change[str]] = []
        self._notified = asyncio.Event()

    def __call__(self, change: Change[str]) -> None:
        self.changes.append(change)
        self._notified.set()

    async def until(self, name: str) -> list[tuple[str, str | None, str | None]]:
        """Wait for a change of the object, and return all changes sorted by name."""
        async with asyncio.timeout(PATIENCE):
            while all(change.key.name != name for change in self.changes):
                self._notified.clear()
                await self._notified.wait()
        return sorted((c.key.name, c.old, c.new) for c in self.changes)


@asynccontextmanager
async def following(cache: Cache[str]) -> AsyncIterator[Notified]:
    """Run a cache, and yield the changes after its first list."""
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await cache.synced()
        notified = Notified()
        cache.subscribe(notified)
        notified.changes.clear()
        yield notified
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def cache_of(client: Client, namespace: str) -> Cache[str]:
    """Return a cache of the tests' ConfigMaps that keeps their values."""
    return Cache(client, CONFIG_MAP, keep_value, namespace=namespace, labels=MINE)


def keep_value(obj: JsonObject) -> str:
    value: str = obj["data"]["x"]
    return value


def mine(name: str, namespace: str, value: str) -> JsonObject:
    return config_map(name, namespace, labels={"test": "mine"}, x=value)


async def until(client: Client, holds: Callable[[], object]) -> None:
    """Wait, with a request between two checks, so that the event loop is not blocked."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await client.get_raw("/version")


async def until_longer(client: Client, writes: list[str], count: int) -> None:
    await until(client, lambda: len(writes) >= count)


def relists(cache: Cache[str]) -> None:
    """Make the next connection start with a list, as after `410 Gone`."""
    cache._position = ""


def resumes(cache: Cache[str]) -> None:
    """Make the next connection continue where the last one ended."""


@pytest.mark.parametrize("how", [resumes, relists])
async def test_changes_during_an_outage_are_notified_once_as_differences(
    cluster_client: Client,
    far_client: Client,
    proxy: CuttableProxy,
    namespace: str,
    how: Callable[[Cache[str]], None],
) -> None:
    for name in ("changed", "deleted", "same"):
        await cluster_client.create(mine(name, namespace, "1"))
    cache = cache_of(far_client, namespace)
    async with following(cache) as notified:
        proxy.refuse()
        assert proxy.cut() > 0
        await until(cluster_client, lambda: cache.problem)
        how(cache)
        await cluster_client.create(mine("added", namespace, "1"))
        await cluster_client.patch(CONFIG_MAP, Key(namespace, "changed"), {"data": {"x": "2"}})
        await cluster_client.delete(CONFIG_MAP, Key(namespace, "deleted"))
        assert notified.changes == []
        proxy.accept()
        await until(cluster_client, lambda: cache.problem is None)
        await cluster_client.create(mine("later", namespace, "1"))
        changes = await notified.until("later")
    assert changes == [
        ("added", None, "1"),
        ("changed", "1", "2"),
        ("deleted", "1", None),
        ("later", None, "1"),
    ]


async def test_a_refused_cache_reports_the_problem_and_recovers(
    cluster_client: Client,
    far_client: Client,
    proxy: CuttableProxy,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = cache_of(far_client, namespace)
    async with following(cache) as notified:
        assert cache.problem is None
        monkeypatch.setattr("pergola.runtime.caching.cache.GRACE_SECONDS", 60.0)
        proxy.refuse()
        proxy.cut()
        await until(cluster_client, lambda: cache.problem)
        assert proxy.config.server in str(cache.problem)
        assert cache.is_synced
        monkeypatch.setattr("pergola.runtime.caching.cache.GRACE_SECONDS", 0.01)
        await until(cluster_client, lambda: not cache.is_synced)
        proxy.accept()
        await until(cluster_client, lambda: cache.is_synced)
        assert cache.problem is None
        await cluster_client.create(mine("a", namespace, "1"))
        await notified.until("a")


async def test_a_silent_connection_is_replaced(
    cluster_client: Client,
    far_client: Client,
    proxy: CuttableProxy,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pergola.kube.watch.SILENCE_SECONDS", 1.0)
    cache = cache_of(far_client, namespace)
    async with following(cache) as notified:
        before = proxy.accepted
        proxy.stall()
        await cluster_client.create(mine("a", namespace, "1"))
        await until(cluster_client, lambda: cache.problem)
        assert notified.changes == []
        await until(cluster_client, lambda: proxy.accepted > before)
        proxy.flow()
        assert await notified.until("a") == [("a", None, "1")]
        assert cache.is_synced


@pytest.fixture
async def far_world(
    proxy: CuttableProxy, cluster_client: Client, namespace: str
) -> AsyncIterator[World]:
    """Yield a namespace with a resource manager behind the proxy, unlike the test itself."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(proxy.config) as recorder:
        world = World(cluster_client, recorder, namespace)
        try:
            yield world
        finally:
            await world.stop()


COUNT = 8
CUTS = 10


def content(world: World, number: int, revision: int) -> list[JsonObject]:
    """Return the objects of a ManagedResource: one with a fixed name, and one with a new name."""
    return [
        world.config_map(f"stays-{number}", revision=str(revision)),
        world.config_map(f"moves-{number}-{revision}", revision=str(revision)),
    ]


async def change_all(world: World, revision: int) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(COUNT):
            group.create_task(world.put_secret(f"mr-{number}", *content(world, number, revision)))


async def data_by_name(world: World) -> dict[str, dict[str, str]]:
    found = await world.client.list(CONFIG_MAP, world.namespace)
    return {name_of(o): o.get("data") or {} for o in found if name_of(o) != "kube-root-ca.crt"}


async def uids_of_kept_objects(world: World) -> set[str]:
    found = await world.client.list(CONFIG_MAP, world.namespace)
    return {uid_of(obj) for obj in found if name_of(obj).startswith(("stays-", "bystander"))}


async def test_repeated_outages_do_not_corrupt_managed_resources(
    far_world: World, proxy: CuttableProxy
) -> None:
    world, chance = far_world, random.Random(7)  # noqa: S311
    await world.client.create(world.config_map("bystander", untouched="yes"))
    await world.start()
    for number in range(COUNT):
        await world.create(f"mr-{number}", *content(world, number, 0))
    for number in range(COUNT):
        await world.healthy(f"mr-{number}")
    before = await uids_of_kept_objects(world)
    writes = world.recorder.writes
    for revision in range(1, CUTS + 1):
        enough = len(writes) + chance.randrange(1, 2 * COUNT)
        await change_all(world, revision)
        await until_longer(world.client, writes, enough)
        await until(world.client, proxy.cut)  # some connections are open again since the last cut
    desired = {
        name_of(obj): obj["data"] for n in range(COUNT) for obj in content(world, n, CUTS)
    } | {"bystander": {"untouched": "yes"}}
    async with asyncio.timeout(PATIENCE):
        while await data_by_name(world) != desired:
            await world.client.get_raw("/version")
    for number in range(COUNT):
        await world.until(f"mr-{number}", is_ready)
    assert await data_by_name(world) == desired
    assert await uids_of_kept_objects(world) == before
    deleted = [write for write in writes if write.startswith("delete")]
    assert all("/moves-" in write for write in deleted)
    assert not any(write.endswith(f"-{CUTS}") for write in deleted)
