"""The life of a Shoot without workers in a landscape, whose resource managers are Pergola's."""

import asyncio
from functools import partial
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, NAMESPACE, SECRET, SHOOT
from pergola.api.objects import JsonObject, Key, map_at, uid_of
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.resource_manager.controllers.managed_resource.fights import BURST
from pergola.sandbox.landscape import create_shoot
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World
from tests.support.landscape_work import Place, is_restored

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_MINE: Final = Key("default", "mine")
_PREPARED: Final = dict.fromkeys(("certificateAuthorities", "serviceAccountKey"), "Prepared")
# gardenlet completes the rotation of the encryption key by itself.
_ROTATED: Final = dict.fromkeys((*_PREPARED, "etcdEncryptionKey"), "Completed")


async def test_its_user_reaches_it_and_all_that_pergola_applied_is_healthy(
    landscape: World, seed: SeedCluster, shoot: Key
) -> None:
    async with landscape.client_of(shoot, seed) as client:
        await client.create(_mine("of-user"))
        assert len(await client.list(NAMESPACE)) > 3
    assert seed.refused() == []


async def test_a_fight_with_pergola_is_reported_in_the_cluster_of_the_seed(
    landscape: World, seed: SeedCluster, shoot: Key
) -> None:
    namespace = map_at(await landscape.garden.get(SHOOT, shoot), "status")["technicalID"]
    client = seed.site.client
    async with landscape.client_of(shoot, seed) as target:
        place = Place(client, target, "", namespace)
        [(kind, key), *_] = await place.objects()
        before = await target.get(kind, key)
        for _ in range(BURST + 1):
            edited = await target.patch(kind, key, {"rules": []})
            await until(target, kind, key, partial(is_restored, before, edited))
    async with asyncio.timeout(PATIENCE):
        while "RepairHeldBack" not in {e["reason"] for e in await client.list(EVENT, namespace)}:
            await client.get_raw("/version")
    assert seed.refused() == []


async def test_a_reconciliation_without_a_change_writes_nothing(
    landscape: World, seed: SeedCluster, shoot: Key
) -> None:
    async with landscape.client_of(shoot, seed) as client:
        before = await contents(client)
        written = len([*seed.writes()])
        await landscape.perform(SHOOT, shoot, "reconcile")
        assert [*seed.writes()][written:] == []
        assert await contents(client) == before


async def test_all_credentials_are_rotated_and_nothing_is_lost(
    landscape: World, seed: SeedCluster, shoot: Key
) -> None:
    async with landscape.client_of(shoot, seed) as client:
        mine = await client.create(_mine())
    await landscape.perform(SHOOT, shoot, "rotate-credentials-start")
    assert phases(await landscape.garden.get(SHOOT, shoot)) == {**_ROTATED, **_PREPARED}
    await landscape.perform(SHOOT, shoot, "rotate-credentials-complete")
    assert phases(await landscape.garden.get(SHOOT, shoot)) == _ROTATED
    async with landscape.client_of(shoot, seed) as client:
        found = await client.get(CONFIG_MAP, _MINE)
    assert (uid_of(found), found["data"]) == (uid_of(mine), mine["data"])
    assert seed.refused() == []


async def test_a_hibernated_one_wakes_with_all_it_had(landscape: World, seed: SeedCluster) -> None:
    patch = {"spec": {"seedName": seed.name}}
    key = await create_shoot(landscape.garden, patch, example="shoot-with-workers.yaml")
    await landscape.reconciled(SHOOT, key)
    async with landscape.client_of(key, seed) as client:
        mine = await client.create(_mine())
    await hibernate(landscape, key, enabled=True)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    server = await seed.site.client.get(DEPLOYMENT, Key(namespace, "kube-apiserver"))
    assert map_at(server, "spec")["replicas"] == 0
    await hibernate(landscape, key, enabled=False)
    async with landscape.client_of(key, seed) as client:
        assert uid_of(await client.get(CONFIG_MAP, _MINE)) == uid_of(mine)
    await landscape.delete(SHOOT, key)
    assert seed.refused() == []


async def test_a_deleted_one_leaves_nothing_behind(landscape: World, seed: SeedCluster) -> None:
    key = await landscape.shoot("short", seed)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    assert await seed.site.client.list(SECRET, namespace)
    await landscape.delete(SHOOT, key)
    assert await seed.site.client.find(NAMESPACE, Key("", namespace)) is None
    assert seed.refused() == []


async def hibernate(landscape: World, key: Key, *, enabled: bool) -> None:
    """Hibernate or wake a Shoot, and wait until that is done."""
    # Gardener removes the annotation of the example with each reconciliation.
    patch: JsonObject = {
        "metadata": {"annotations": {"shoot.gardener.cloud/skip-readiness": ""}},
        "spec": {"hibernation": {"enabled": enabled}},
    }
    await landscape.garden.patch(SHOOT, key, patch)
    found = await landscape.reconciled(SHOOT, key)
    assert bool(map_at(found, "status").get("hibernated")) == enabled


def _mine(name: str = _MINE.name) -> JsonObject:
    return manifest("v1", "ConfigMap", name, namespace=_MINE.namespace, data={"a": "b"})


def phases(shoot: JsonObject) -> dict[str, str]:
    """Return the phases of the rotations of a Shoot."""
    rotation = map_at(shoot, "status", "credentials", "rotation")
    return {name: rotation[name]["phase"] for name in _ROTATED}


async def contents(client: Client) -> dict[str, str]:
    """Return the resource versions of the objects in which a write would show."""
    return {
        f"{kind.kind} {Key.of(obj)}": obj["metadata"]["resourceVersion"]
        for kind in (CONFIG_MAP, SECRET, NAMESPACE)
        for obj in await client.list(kind)
    }
