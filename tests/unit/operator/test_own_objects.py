"""Objects of the operator that others delete or edit are reported between reconciliations."""

from typing import Literal

import pytest

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.transport import Transport
from pergola.kube.watch import WatchEvent
from pergola.operator.reconcile.own_objects import OwnObjects
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import Packed, packed
from tests.support.cluster_config import cluster_config


class World:
    """Copies of Secrets and ManagedResources that a test fills, and the reports."""

    def __init__(self) -> None:
        client = Client(Transport(cluster_config()))
        self.copies: dict[GroupVersionKind, Cache[Packed]] = {
            gvk: Cache(client, gvk, packed, namespace="garden")
            for gvk in (SECRET, MANAGED_RESOURCE)
        }
        self.own = OwnObjects(client, [*self.copies.values()])
        self.reports = 0
        self.version = 0
        self.own.vanished.subscribe(self._count)
        for cache in self.copies.values():
            cache._event(WatchEvent("OPENED", {}))

    def _count(self, _: None) -> None:
        self.reports += 1

    def event(
        self,
        gvk: GroupVersionKind,
        name: str,
        type_: Literal["ADDED", "MODIFIED", "DELETED"] = "ADDED",
        **metadata: object,
    ) -> None:
        self.version += 1
        obj: JsonObject = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {
                "name": name,
                "namespace": "garden",
                "resourceVersion": str(self.version),
                **metadata,
            },
        }
        self.copies[gvk]._event(WatchEvent(type_, obj))


@pytest.fixture
async def world() -> World:
    return World()


def named(gvk: GroupVersionKind, *names: str) -> set[Identity]:
    return {Identity(gvk, Key("garden", name)) for name in names}


async def test_a_deleted_object_is_reported_once_and_others_never(world: World) -> None:
    for name in ("a", "b", "others"):
        world.event(SECRET, name)
    world.own.expect(named(SECRET, "a", "b"))

    world.event(SECRET, "others", "DELETED")
    world.event(SECRET, "a", "MODIFIED", labels={"c": "d"})
    assert world.reports == 0
    world.event(SECRET, "a", "DELETED")
    assert world.reports == 1
    world.event(SECRET, "b", "DELETED")  # the reconciliation that begins repairs it, too
    assert world.reports == 1


async def test_nothing_is_reported_during_a_reconciliation(world: World) -> None:
    world.event(SECRET, "a")
    world.own.expect(named(SECRET, "a"))
    world.own.begin()
    world.event(SECRET, "a", "DELETED")
    world.event(SECRET, "a")
    world.own.expect(named(SECRET, "a"))

    assert world.reports == 0


async def test_an_object_that_vanished_meanwhile_is_reported_once(world: World) -> None:
    world.event(SECRET, "a")
    world.own.expect(named(SECRET, "a", "b"))
    assert world.reports == 1
    world.own.begin()
    world.own.expect(named(SECRET, "a", "b"))
    assert world.reports == 1, "somebody insists that it does not exist"
    world.event(SECRET, "a", "DELETED")
    assert world.reports == 2


async def test_the_spec_of_a_managed_resource_is_followed_but_not_its_status(world: World) -> None:
    world.event(MANAGED_RESOURCE, "a", generation=1)
    world.own.expect(named(MANAGED_RESOURCE, "a"))

    world.event(MANAGED_RESOURCE, "a", "MODIFIED", generation=1)
    assert world.reports == 0
    world.event(MANAGED_RESOURCE, "a", "MODIFIED", generation=2)
    assert world.reports == 1


async def test_kinds_and_namespaces_without_copies_are_not_expected(world: World) -> None:
    elsewhere = Identity(SECRET, Key("kube-system", "a"))
    world.own.expect({*named(CONFIG_MAP, "a"), elsewhere})

    assert world.reports == 0
