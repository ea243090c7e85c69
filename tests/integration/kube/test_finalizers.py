"""Finalizers on a real API server: those of others stay, and stale reads lose nothing."""

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, finalizers_of
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.kube.finalizers import add_finalizer, remove_finalizer

MINE, OTHER = "example.org/mine", "example.org/other"


async def created(client: Client, namespace: str, *finalizers: str) -> JsonObject:
    metadata = {"name": "kept", "namespace": namespace, "finalizers": list(finalizers)}
    return await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


async def release(client: Client, key: Key) -> None:
    await client.patch(CONFIG_MAP, key, {"metadata": {"finalizers": None}})


async def test_a_finalizer_is_added_once_and_removed_alone(
    cluster_client: Client, namespace: str
) -> None:
    before = await created(cluster_client, namespace, OTHER)
    added = await add_finalizer(cluster_client, CONFIG_MAP, before, MINE)
    assert added is not None
    assert finalizers_of(added) == [OTHER, MINE]
    assert await add_finalizer(cluster_client, CONFIG_MAP, added, MINE) is added

    with pytest.raises(Conflict):
        await add_finalizer(cluster_client, CONFIG_MAP, before, "example.org/late")

    assert await remove_finalizer(cluster_client, CONFIG_MAP, added, MINE)
    left = await cluster_client.get(CONFIG_MAP, Key.of(before))
    assert finalizers_of(left) == [OTHER]
    assert not await remove_finalizer(cluster_client, CONFIG_MAP, left, MINE)
    await release(cluster_client, Key.of(before))


async def test_an_object_that_is_being_deleted_gets_none(
    cluster_client: Client, namespace: str
) -> None:
    key = Key.of(await created(cluster_client, namespace, OTHER))
    await cluster_client.delete(CONFIG_MAP, key)
    leaving = await cluster_client.get(CONFIG_MAP, key)

    assert await add_finalizer(cluster_client, CONFIG_MAP, leaving, MINE) is leaving
    await release(cluster_client, key)


async def test_an_object_that_is_gone_or_was_created_anew_is_left_alone(
    cluster_client: Client, namespace: str
) -> None:
    first = await created(cluster_client, namespace)
    key = Key.of(first)
    await cluster_client.delete(CONFIG_MAP, key)
    assert await add_finalizer(cluster_client, CONFIG_MAP, first, MINE) is None

    await created(cluster_client, namespace)
    with pytest.raises(Conflict):
        await add_finalizer(cluster_client, CONFIG_MAP, first, MINE)
    assert finalizers_of(await cluster_client.get(CONFIG_MAP, key)) == []
