"""Deletion of CustomResourceDefinitions whose instances were never read."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pergola.api.kinds import CRD
from pergola.api.marks import DELETE_ON_INVALID_UPDATE
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.kube.definitions import set_up_storage
from pergola.kube.errors import Invalid
from pergola.kube.kubeconfig import load
from pergola.operator.run.direct import DirectObjects
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.recreate import (
    ApplyRefused,
    delete_to_recreate,
)
from pergola.runtime.clock import SystemClock
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
    just_created = await cluster_client.create(definition(group))
    try:
        await set_up_storage(cluster_client, just_created)
        counted = f'watch_cache_initializations_total{{group="{group}",resource="things0"}}'
        async with asyncio.timeout(PATIENCE):
            while counted not in (await cluster_client.get_raw("/metrics")).decode():
                pass
    finally:
        await cluster_client.delete(CRD, Key.of(just_created))
    await until_gone(cluster_client, CRD, Key.of(just_created))


class Noting(Client):
    """A client that notes the paths that it reads, and the names of what it deletes."""

    noted: list[str]

    async def get_raw(self, path: str) -> bytes:
        self.noted.append(path)
        return await super().get_raw(path)

    async def delete(self, gvk: GroupVersionKind, key: Key, **preconditions: Any) -> bool:
        self.noted.append(f"delete {key}")
        return await super().delete(gvk, key, **preconditions)


async def by_the_operator(client: Client, live: JsonObject) -> None:
    await DirectObjects(client, SystemClock()).delete(Identity(CRD, Key.of(live)))


async def to_recreate(client: Client, live: JsonObject) -> None:
    marked = {**live, "metadata": {"annotations": {DELETE_ON_INVALID_UPDATE: "true"}}}
    planned = Planned(CRD, Key.of(live), "", b"", b"", b"")
    with suppress(ApplyRefused):
        await delete_to_recreate(client, planned, marked, live, Invalid(422, {}))


@pytest.mark.parametrize("delete", [by_the_operator, to_recreate])
async def test_a_deletion_of_a_definition_reads_its_instances_first(
    kubeconfig: Path,
    cluster_client: Client,
    group: str,
    delete: Callable[[Client, JsonObject], Awaitable[None]],
) -> None:
    live = await established(cluster_client, await cluster_client.create(definition(group)))
    async with Noting.connect(load(kubeconfig)) as client:
        client.noted = []
        await delete(client, live)
    await until_gone(cluster_client, CRD, Key.of(live))
    read, deleted = (each for each in client.noted if group in each)
    assert read.startswith(f"/apis/{group}/v1/things0?")
    assert deleted == f"delete {name_of(live)}"


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
