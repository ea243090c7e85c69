"""The life of a Garden: it comes up, stays as it is, repairs itself, and goes away.

Its virtual cluster is a second control plane, started with what the operator rendered.
"""

from collections.abc import Iterable

import pytest

from pergola.api.kinds import (
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
from pergola.api.objects import JsonObject, Key, finalizers_of, labels_of, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.operator.components.resource_manager.virtual import BOOTSTRAP
from pergola.operator.garden.etcd_objects import ETCD
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox.simulated import Site
from pergola.testing.garden_world import example, operating
from pergola.testing.shared import require_images
from pergola.testing.waiting import until, until_gone

pytestmark = pytest.mark.timeout(900)

LOCAL = Key("", "local")
PATIENCE = 400.0
CONDITIONS = {
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
}
KINDS = (CONFIG_MAP, DEPLOYMENT, ETCD, MANAGED_RESOURCE, SECRET, SERVICE, SERVICE_ACCOUNT)
CONFIRMED = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
RECONCILE = {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}


def last_operation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "lastOperation")


def has_succeeded(garden: JsonObject) -> bool:
    return last_operation(garden).get("state") == "Succeeded"


async def contents(client: Client) -> dict[str, object]:
    """Return what users care about of all objects of the garden: everything but their status."""
    found: dict[str, object] = {}
    for kind in KINDS:
        for obj in await client.list(kind, "garden"):
            metadata = {"labels": labels_of(obj), "uid": obj["metadata"]["uid"]}
            parts = {name: obj.get(name) for name in ("spec", "data")}
            found[f"{kind.kind} {name_of(obj)}"] = {**metadata, **parts}
    # The certificate of the bootstrap goes with the next reconciliation.
    return {name: each for name, each in found.items() if BOOTSTRAP not in name}


async def managed_secrets(client: Client) -> list[str]:
    labels = "managed-by=secrets-manager,manager-identity=gardener-operator"
    return [name_of(secret) for secret in await client.list(SECRET, "garden", labels=labels)]


def missing(names: Iterable[str], present: Iterable[str]) -> set[str]:
    return set(names) - set(present)


@pytest.fixture(autouse=True)
def images() -> None:
    require_images("gardener-apiserver")


async def test_a_garden_comes_up_stays_repairs_itself_and_goes(garden_world: Site) -> None:
    client = garden_world.client
    async with operating(garden_world):
        await client.create(example())
        started = await until(
            client,
            GARDEN,
            LOCAL,
            lambda it: last_operation(it).get("progress", 0) > 15,
            patience=PATIENCE,
        )
        assert "gardener.cloud/operator" in finalizers_of(started)
    # An operator that starts in the middle goes on.
    async with operating(garden_world):
        garden = await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
        assert last_operation(garden)["progress"] == 100
        await _serves(garden_world)
        await _is_healthy(client)
        await _stays(client)
        await _is_repaired(client)
        await _goes(client)


async def _serves(site: Site) -> None:
    """The virtual cluster answers, and its tokens come from its own resource manager."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        namespaces = {name_of(each) for each in await virtual.list(NAMESPACE)}
    assert not missing({"garden", "gardener-system-public"}, namespaces)


async def _is_healthy(client: Client) -> None:
    await until(client, GARDEN, LOCAL, all_conditions_true, patience=PATIENCE)


def all_conditions_true(garden: JsonObject) -> bool:
    conditions = {each["type"]: each["status"] for each in garden["status"].get("conditions", [])}
    return all(conditions.get(kind) == "True" for kind in CONDITIONS)


async def _stays(client: Client) -> None:
    """Another reconciliation changes nothing."""
    before = await contents(client)
    generation = (await client.patch(GARDEN, LOCAL, RECONCILE))["metadata"]["generation"]
    await until(client, GARDEN, LOCAL, lambda it: not has_succeeded(it), patience=PATIENCE)
    garden = await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
    assert garden["metadata"]["generation"] == generation
    assert "gardener.cloud/operation" not in garden["metadata"]["annotations"]
    assert await contents(client) == before


async def _is_repaired(client: Client) -> None:
    """The resource manager restores what it manages, without the operator."""
    key = Key("garden", "gardener-scheduler")
    deleted = await client.get(DEPLOYMENT, key)
    await client.delete(DEPLOYMENT, key)
    uid = deleted["metadata"]["uid"]
    await until(client, DEPLOYMENT, key, lambda it: it["metadata"]["uid"] != uid)


async def _goes(client: Client) -> None:
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)
    await until_gone(client, GARDEN, LOCAL, patience=PATIENCE)
    assert await managed_secrets(client) == []
    unique = "resources.gardener.cloud/garbage-collectable-reference=true"
    for kind in (CONFIG_MAP, SECRET):
        assert await client.list(kind, "garden", labels=unique) == []
    assert await client.list(DEPLOYMENT, "garden") == []
    definitions = {name_of(each) for each in await client.list(CRD)}
    assert "etcds.druid.gardener.cloud" not in definitions
    assert "gardens.operator.gardener.cloud" in definitions
    assert await client.find(NAMESPACE, Key("", "garden")) is not None
