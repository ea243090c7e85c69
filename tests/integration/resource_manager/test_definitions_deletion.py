"""Deletion of CustomResourceDefinitions whose instances were never read."""

import asyncio
import uuid

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.resource_manager.controllers.managed_resource.definitions import set_up_storage
from pergola.testing.crds import is_established
from pergola.testing.waiting import PATIENCE, until, until_gone
from pergola.testing.world import World

_MANY = 10


@pytest.fixture
def group() -> str:
    return f"g{uuid.uuid4().hex[:8]}.example.org"


def definition(group: str, number: int = 0) -> JsonObject:
    """Return a definition with two versions, of which the second is stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": f"Thing{number}", "plural": f"things{number}", "singular": f"thing{number}"}
    versions = [
        {"name": "v1alpha1", "served": True, "storage": False, "schema": schema},
        {"name": "v1", "served": True, "storage": True, "schema": schema},
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


async def established(client: Client, definition: JsonObject) -> JsonObject:
    return await until(client, CRD, Key("", name_of(definition)), is_established)


async def test_the_api_server_caches_the_instances_before_the_deletion(
    cluster_client: Client, group: str
) -> None:
    found = await cluster_client.create(definition(group))
    try:
        await set_up_storage(cluster_client, await established(cluster_client, found))
        counted = f'watch_cache_initializations_total{{group="{group}",resource="things0"}}'
        async with asyncio.timeout(PATIENCE):
            while counted not in (await cluster_client.get_raw("/metrics")).decode():
                pass
    finally:
        await cluster_client.delete(CRD, Key.of(found))
    await until_gone(cluster_client, CRD, Key.of(found))


async def test_an_unserved_definition_is_not_an_error(cluster_client: Client, group: str) -> None:
    unserved = definition(group)
    for version in unserved["spec"]["versions"]:
        version["served"] = False

    await set_up_storage(cluster_client, unserved)
    await set_up_storage(cluster_client, definition(group))


async def test_definitions_without_readers_are_deleted_with_their_managed_resource(
    world: World, group: str
) -> None:
    definitions = [definition(group, number) for number in range(_MANY)]
    await world.start()
    await world.create("definitions", *definitions)
    await world.applied("definitions")
    for each in definitions:
        await established(world.client, each)

    await world.delete("definitions")
    for each in definitions:
        await until_gone(world.client, CRD, Key.of(each))
