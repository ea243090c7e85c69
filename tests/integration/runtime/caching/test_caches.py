"""Caches of one kind in several namespaces, and units that run caches with controllers."""

import asyncio

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.controller import DONE, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.waiting import running, settled
from pergola.testing.world import config_map


async def test_only_the_given_namespaces_are_cached(cluster_client: Client, namespace: str) -> None:
    other = await create_namespace(cluster_client, "other")
    for place in (namespace, other):
        await cluster_client.create(config_map("demo", place))
    caches = Caches(cluster_client, CONFIG_MAP, name_of, namespaces=[namespace])
    async with running(Unit(caches=caches)):
        assert caches.get(Key(namespace, "demo")) == "demo"
        assert caches.get(Key(other, "demo")) is None
        assert caches.covers(namespace)
        assert not caches.covers(other)
        assert {key.namespace for key, _ in caches.items()} == {namespace}
    await clear_namespace(cluster_client, other)


async def test_a_controller_starts_only_when_the_caches_are_filled(
    cluster_client: Client, namespace: str
) -> None:
    names = {f"demo-{number}" for number in range(20)}
    for name in names:
        await cluster_client.create(config_map(name, namespace, labels={"test": "unit"}))
    caches = Caches(cluster_client, CONFIG_MAP, name_of, namespaces=[namespace], labels="test=unit")
    known_at_first: list[int] = []

    async def reconcile(_: Key) -> Outcome:
        known_at_first.append(len(caches))
        return DONE

    controller = Workers("test", reconcile, workers=2, metrics=Metrics())
    caches.subscribe(lambda change: controller.queue.add(change.key))
    unit = Unit(caches=caches, controllers=[controller])
    assert unit.unsynced
    async with running(unit):
        await settled(unit, cluster_client)
        assert not unit.unsynced
    assert known_at_first == [len(names)] * len(names)


async def test_the_result_of_an_observed_write_is_visible_at_once(
    cluster_client: Client, namespace: str
) -> None:
    caches = Caches(cluster_client, CONFIG_MAP, _data, namespaces=[namespace])
    async with running(Unit(caches=caches)):
        caches.observe(await cluster_client.create(config_map("demo", namespace, a="1")))
        assert caches.get(Key(namespace, "demo")) == {"a": "1"}


async def test_a_unit_ends_with_the_error_of_its_task(cluster_client: Client) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ExceptionGroup) as raised:
        await Unit(tasks=[fails]).run()
    assert raised.group_contains(ValueError, match="broken")


def _data(obj: JsonObject) -> JsonObject:
    data: JsonObject = obj.get("data") or {}
    return data
