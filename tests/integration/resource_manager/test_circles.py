"""A ManagedResource that describes what it needs itself says so, and can be deleted."""

from collections.abc import Callable

import pytest

from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.resource_manager.controllers.managed_resource.circles import needed_objects
from pergola.testing.world import World, message

APPLIED = "ResourcesApplied"


def own_namespace(world: World) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace}}


def own_secret(world: World) -> JsonObject:
    metadata = {"name": "demo", "namespace": world.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}}


def itself(world: World) -> JsonObject:
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {"name": "demo", "namespace": world.namespace},
        "spec": {"secretRefs": [{"name": "demo"}]},
    }


@pytest.mark.parametrize("described", [own_namespace, own_secret, itself])
async def test_it_warns_and_can_be_deleted(
    world: World, described: Callable[[World], JsonObject]
) -> None:
    await world.start(sync_period=3600.0)
    obj = described(world)
    await world.create("demo", world.config_map("a"), obj)
    done = await world.until("demo", lambda r: "\n* " in message(r, APPLIED))
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "default")
    remark = f'* "{obj["apiVersion"]}/{obj["kind"]}/{namespace}/{name}" '
    assert remark in message(done, APPLIED)
    secret = await world.client.get(SECRET, world.key("demo"))
    assert set(secret["data"]) == {"000.yaml", "001.yaml"}

    await world.delete("demo")

    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    await world.until_gone(CONFIG_MAP, world.key("a"))
    live = await world.client.get(NAMESPACE, Key("", world.namespace))
    assert deletion_timestamp_of(live) is None
    assert await world.exists(SECRET, "demo")


async def test_a_run_after_the_managed_resource_is_gone_leaves_the_namespace_alone(
    world: World,
) -> None:
    gone = await world.create_resource("gone", [])
    await world.delete("gone")
    await world.until_gone(MANAGED_RESOURCE, world.key("gone"))

    needed = await needed_objects(
        gone, [(NAMESPACE, Key("", world.namespace))], source=world.client, target=world.client
    )

    assert len(needed) == 1


async def test_objects_of_the_same_names_in_another_cluster_are_like_any_others(
    world: World, second_client: Client
) -> None:
    resource = await world.create_resource("demo", [])

    needed = await needed_objects(
        resource, [(NAMESPACE, Key("", world.namespace))], source=world.client, target=second_client
    )

    assert needed == {}
