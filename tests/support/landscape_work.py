"""Random work in a landscape: edits, reconciliations, kills, rotations, and short-lived Shoots."""

import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from pergola.api.kinds import CLUSTER_ROLE, SEED, SHOOT
from pergola.api.marks import IGNORE, OPERATION
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    maps_at,
    resource_version_of,
)
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.testing.waiting import until
from tests.support.garden_states import reconciled_after
from tests.support.landscape import PATIENCE, SeedCluster, World
from tests.support.landscape_faults import kill_one

_ROLE: Final = GroupVersionKind(CLUSTER_ROLE.group, CLUSTER_ROLE.version, "Role")
_EDITED: Final = {each.kind: each for each in (CLUSTER_ROLE, _ROLE)}
"""Kinds of which all clusters have many, and of which nothing depends on one object for long."""
_OFTEN: Final[Mapping[str, int]] = {"edit": 60, "reconcile": 12, "kill": 8, "rotate": 2, "come": 3}


class Work:
    """Work in a landscape.

    Attributes:
        shoots: those that stay; the credentials of the last one are rotated.
        done: how often each action was done.
    """

    def __init__(
        self, landscape: World, seed: SeedCluster, shoots: tuple[Key, ...], chance: random.Random
    ) -> None:
        self.shoots = shoots
        self.done: Counter[str] = Counter()
        self._landscape = landscape
        self._seed = seed
        self._chance = chance

    async def go_on(self, end: float, *, with_kills: bool) -> None:
        """Do one thing after another until a time of the monotonic clock, and finish the last."""
        often = {name: n for name, n in _OFTEN.items() if with_kills or name != "kill"}
        actions = {
            "edit": self._edit,
            "reconcile": self._reconcile,
            "kill": self._kill,
            "rotate": self._rotate,
            "come": self._come_and_go,
        }
        while time.monotonic() < end:
            [name] = self._chance.choices([*often], [*often.values()])
            await actions[name]()
            self.done[name] += 1

    async def _edit(self) -> None:
        """Change or delete an object that Pergola applied, and wait until it is back."""
        async with self._place() as place:
            kind, key = self._chance.choice(await place.objects())
            before = await place.target.get(kind, key)
            edited = before
            if before["rules"] and "aggregationRule" not in before and self._chance.random() < 0.5:
                edited = await place.target.patch(kind, key, {"rules": []})
            else:
                await place.target.delete(kind, key)
            await until(place.target, kind, key, lambda obj: is_restored(before, edited, obj))

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator["Place"]:
        """Connect to one of the places of a resource manager."""
        garden, seed = self._landscape.clusters.garden.client, self._seed.site.client
        name = self._chance.choice(("runtime cluster", "virtual cluster", "Seed", "Shoot"))
        if name == "Shoot":
            key = self.shoots[0]
            shoot = await self._landscape.garden.get(SHOOT, key)
            async with self._landscape.client_of(key, self._seed) as client:
                yield Place(seed, client, "", shoot["status"]["technicalID"])
        elif name == "virtual cluster":
            yield Place(garden, self._landscape.garden, "", "garden")
        else:
            client = seed if name == "Seed" else garden
            yield Place(client, client, "seed", None)

    async def _reconcile(self) -> None:
        runtime = self._landscape.clusters.garden.client
        garden = Key("", "local")
        objects = [(SEED, Key("", self._seed.name)), *((SHOOT, key) for key in self.shoots)]
        kind, key = self._chance.choice([(GARDEN, garden), *objects])
        if kind == GARDEN:
            request: JsonObject = {"metadata": {"annotations": {OPERATION: "reconcile"}}}
            last = await runtime.patch(GARDEN, garden, request)
            await until(runtime, GARDEN, garden, reconciled_after(last), patience=PATIENCE)
        else:
            await self._landscape.perform(kind, key, "reconcile")

    async def _kill(self) -> None:
        kill_one(self._landscape, (self._seed,), self._chance)

    async def _rotate(self) -> None:
        key = self.shoots[-1]
        await self._landscape.perform(SHOOT, key, "rotate-credentials-start")
        await self._landscape.perform(SHOOT, key, "rotate-credentials-complete")

    async def _come_and_go(self) -> None:
        key = await self._landscape.shoot("short", self._seed)
        await self._landscape.delete(SHOOT, key)


class Place(NamedTuple):
    """A place of a resource manager.

    Attributes:
        source: the cluster with its ManagedResources.
        target: the cluster with their objects.
        of_class: the class of the ManagedResources.
        namespace: of the ManagedResources, if they are in one.
    """

    source: Client
    target: Client
    of_class: str
    namespace: str | None

    async def objects(self) -> list[tuple[GroupVersionKind, Key]]:
        """Return the objects that may be edited, in order."""
        found = [
            (_EDITED[each["kind"]], Key(each.get("namespace", ""), each["name"]))
            for resource in await self.source.list(MANAGED_RESOURCE, self.namespace)
            if map_at(resource, "spec").get("class", "") == self.of_class and _is_kept(resource)
            for each in maps_at(resource, "status", "resources")
            if each["kind"] in _EDITED
        ]
        return sorted(found)


def _is_kept(resource: JsonObject) -> bool:
    is_ignored = annotations_of(resource).get(IGNORE) == "true"
    return not is_ignored and deletion_timestamp_of(resource) is None


def is_restored(before: JsonObject, edited: JsonObject, obj: JsonObject) -> bool:
    """Return whether a role is as it was before an edit, and was written since."""
    has_changed = resource_version_of(obj) != resource_version_of(edited)
    return has_changed and obj["rules"] == before["rules"]
