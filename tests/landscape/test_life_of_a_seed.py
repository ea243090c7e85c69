"""The life of a Seed in a landscape: reconciled, its credentials renewed, deleted."""

import pytest

from pergola.api.kinds import CRD, NAMESPACE, NODE, POD, SECRET, SEED, SHOOT
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.sandbox.landscape import ZONES, create_shoot
from pergola.testing.waiting import until_gone
from tests.support.landscape import SeedCluster, World

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_KUBECONFIG = Key("garden", "gardenlet-kubeconfig")


async def test_all_its_managed_resources_are_healthy_and_nothing_was_forbidden(
    seed: SeedCluster,
) -> None:
    found = await seed.site.client.list(MANAGED_RESOURCE, "garden")
    assert len(found) > 10
    for resource in found:
        conditions = {
            each["type"]: each["status"] for each in maps_at(resource, "status", "conditions")
        }
        assert conditions == {
            "ResourcesApplied": "True",
            "ResourcesHealthy": "True",
            "ResourcesProgressing": "False",
        }, name_of(resource)
    assert seed.refused() == []


async def test_a_reconciliation_without_a_change_writes_nothing(
    landscape: World, seed: SeedCluster
) -> None:
    written = len([*seed.writes()])
    await landscape.perform(SEED, Key("", seed.name), "reconcile")
    assert [*seed.writes()][written:] == []


@pytest.mark.parametrize("operation", ["renew-kubeconfig", "renew-garden-access-secrets"])
async def test_its_credentials_are_renewed(
    landscape: World, seed: SeedCluster, operation: str
) -> None:
    before = await seed.site.client.get(SECRET, _KUBECONFIG)
    await landscape.perform(SEED, Key("", seed.name), operation)
    after = await seed.site.client.get(SECRET, _KUBECONFIG)
    assert (before["data"] != after["data"]) == (operation == "renew-kubeconfig")


async def test_control_planes_in_three_zones_survive_the_loss_of_one(landscape: World) -> None:
    async with landscape.opened_seed("zones", zones=ZONES) as seed:
        await landscape.join(seed)
        patch: JsonObject = {
            "metadata": {"name": "available"},
            "spec": {
                "seedName": seed.name,
                "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
            },
        }
        key = await create_shoot(landscape.garden, patch)
        await landscape.healthy(SHOOT, key)
        namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
        zones = {
            name_of(node): labels_of(node)["topology.kubernetes.io/zone"]
            for node in await seed.site.client.list(NODE)
        }
        for app in ("kubernetes", "gardener-resource-manager"):
            pods = await seed.site.client.list(POD, namespace, labels=f"app={app}")
            spread = {zones[map_at(pod, "spec")["nodeName"]] for pod in pods}
            assert len(spread) > 1, app
        assert seed.refused() == []
        await landscape.delete(SHOOT, key)
        await landscape.delete(SEED, Key("", seed.name))


async def test_a_deleted_one_leaves_nothing_behind(landscape: World) -> None:
    seed = await landscape.seed("short")
    # Its role is deleted before the resource manager is.
    assert seed.refused() == []
    await landscape.delete(SEED, Key("", seed.name))
    client = seed.site.client
    for crd in await client.list(CRD):
        if map_at(crd, "spec")["names"]["kind"] in {MANAGED_RESOURCE.kind, "Etcd", "DNSRecord"}:
            # gardenlet deletes the first one at the end, and does not wait for the API server.
            await until_gone(client, CRD, Key.of(crd))
    left = {name_of(each) for each in await client.list(NAMESPACE)}
    assert not {name for name in left if name.startswith(("istio", "extension"))}
