"""The autoscalers of a target, and the ManagedResources that their changes trigger."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.managed_resource.references import object_key_of
from pergola.resource_manager.controllers.managed_resource.triggers import scaling
from pergola.resource_manager.target import Target
from pergola.resource_manager.target.autoscalers import HPA, Autoscalers
from pergola.resource_manager.target.describers import Describers
from pergola.resource_manager.target.watches import Watches
from pergola.runtime.caching.cache import Cache, Change

KEY = Key("garden", "web")
MR = Key("garden", "mr")


def autoscaler(
    version: int, *, target: str = "web", api_version: str = "apps/v1", **status: object
) -> JsonObject:
    """Return an autoscaler of a Deployment."""
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": str(version)}
    scaled = {"apiVersion": api_version, "kind": "Deployment", "name": target}
    return {
        "apiVersion": HPA.api_version,
        "kind": HPA.kind,
        "metadata": metadata,
        "spec": {"scaleTargetRef": scaled},
        "status": status,
    }


class Site:
    """Autoscalers whose first list is complete, and the changes that they report."""

    def __init__(self) -> None:
        client = cast("Client", SimpleNamespace())
        watches = Watches(client, managed_by="gardener", namespaces=())
        self.autoscalers = Autoscalers(watches)
        self.changes: list[Change[JsonObject]] = []
        self.autoscalers.changes.subscribe(self.changes.append)

    async def start(self, *listed: JsonObject) -> "Cache[Any]":
        """Complete the first list; return the cache."""
        made: list[Cache[Any]] = []
        watches = vars(self.autoscalers)["_watches"]
        start = watches.start

        def complete(cache: Cache[Any]) -> None:
            start(cache)
            for each in listed:
                cache._take(each, initial=True)
            cache._complete({Key.of(each) for each in listed}, "1")
            made.append(cache)

        watches.start = complete
        await self.autoscalers.of(["garden"])
        return made[0]

    async def targets(self, *namespaces: str) -> list[str]:
        """Return the names of all scaled objects in some namespaces."""
        found = await self.autoscalers.of(namespaces)
        return [each["spec"]["scaleTargetRef"]["name"] for each in found]


async def test_autoscalers_are_found_by_their_namespaces() -> None:
    site = Site()
    await site.start(autoscaler(1))
    assert await site.targets("garden") == ["web"]
    assert await site.targets("other") == []


async def test_only_changes_of_what_is_scaled_are_reported() -> None:
    site = Site()
    cache = await site.start(autoscaler(1))
    assert site.changes == []
    cache.observe(autoscaler(2, currentReplicas=7))
    assert site.changes == []
    cache.observe(autoscaler(3, target="api"))
    cache._drop(KEY)
    assert [change.key for change in site.changes] == [KEY, KEY]
    assert await site.targets("garden") == []


async def test_a_deleted_autoscaler_counts_no_longer_although_the_watch_is_late() -> None:
    site = Site()
    cache = await site.start(autoscaler(1))
    site.autoscalers.deleted(KEY)
    assert await site.targets("garden") == []
    cache._drop(KEY)
    site.autoscalers.observe(autoscaler(9))
    assert await site.targets("garden") == ["web"]


@pytest.mark.parametrize(
    ("old", "new", "triggered"),
    [
        (None, autoscaler(1), [MR]),
        (autoscaler(1), None, [MR]),
        (autoscaler(1), autoscaler(2, target="other"), [MR]),
        (autoscaler(1, target="other"), None, []),
        (None, autoscaler(1, api_version="extensions/v1beta1"), [MR]),
        (None, autoscaler(1, api_version="a/b/c"), []),
    ],
)
def test_an_autoscaler_triggers_those_that_describe_its_target(
    old: JsonObject | None, new: JsonObject | None, triggered: list[Key]
) -> None:
    describers = Describers()
    describers.set(MR, [object_key_of(DEPLOYMENT, KEY)])
    target = cast("Target", SimpleNamespace(describers=describers))
    assert list(scaling(Change(KEY, old, new), target)) == triggered
