"""Changes of objects that a Garden depends on reconcile it (spec 20 'Beyond' 16)."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pergola.api.kinds import CONFIG_MAP, CRD, SECRET, SEED
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.seeds import MANAGED_SEED, Used
from pergola.kube.client import Client
from pergola.operator.copies import Copies
from pergola.operator.reconcile.named_objects import named_object_watches
from pergola.operator.reconcile.reconcile import is_ignored
from pergola.operator.seeds import SeedWatch
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, served
from pergola.testing.waiting import running, settled, until_gone
from tests.support.gardens import GARDENER, MINIMAL, SERVER, with_values

GARDEN_KEY = Key("", "minimal")
NAMED = Key("garden", "named")
POLICY = Key("garden", "policy")
OTHER = Key("garden", "other")
REFERENCES = {
    f"{SERVER}.sni": {"secretName": NAMED.name},
    f"{GARDENER}.gardenerAPIServer": {
        "auditConfig": {"auditPolicy": {"configMapRef": {"name": POLICY.name}}}
    },
}


def manifest(gvk: GroupVersionKind, key: Key, **content: Any) -> JsonObject:
    metadata = {"namespace": key.namespace, "name": key.name, **content.pop("metadata", {})}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **content}


def data(text: str) -> JsonObject:
    return {"data": {"key": base64.b64encode(text.encode()).decode()}}


class Triggers:
    """A cluster with a Garden, and the keys that were reconciled."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.copies = Copies(client)
        self._reconciled: list[Key] = []
        watches = list(named_object_watches(self.copies, is_ignored))
        self._unit = Controller("triggers", self._reconcile, watches=watches, metrics=Metrics())

    async def taken(self) -> list[Key]:
        """Return the keys since the last call, after all changes were noticed."""
        await settled(self._unit, self.client)
        found, self._reconciled = self._reconciled, []
        return found

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        caches = [
            self.copies.of(GARDEN),
            *(self.copies.of(kind, "garden") for kind in (SECRET, CONFIG_MAP)),
        ]
        async with running(Unit("copies", caches=caches), self._unit):
            yield

    async def _reconcile(self, key: Key) -> Outcome:
        self._reconciled.append(key)
        return DONE


@pytest.fixture
async def triggers(runtime: Client) -> AsyncIterator[Triggers]:
    await runtime.create(with_values(MINIMAL, REFERENCES))
    for gvk, key in ((SECRET, NAMED), (CONFIG_MAP, POLICY), (SECRET, OTHER)):
        await runtime.create(manifest(gvk, key))
    found = Triggers(runtime)
    async with found.running():
        yield found
    for gvk, key in ((SECRET, NAMED), (CONFIG_MAP, POLICY), (SECRET, OTHER)):
        if await runtime.find(gvk, key):
            await runtime.delete(gvk, key)


async def test_objects_that_exist_at_the_start_do_not_trigger_the_garden(
    triggers: Triggers,
) -> None:
    assert await triggers.taken() == []


async def test_the_content_of_a_named_secret_triggers_the_garden(triggers: Triggers) -> None:
    await triggers.client.patch(SECRET, NAMED, data("new"))
    assert await triggers.taken() == [GARDEN_KEY]


async def test_the_content_of_a_named_config_map_triggers_the_garden(triggers: Triggers) -> None:
    await triggers.client.patch(CONFIG_MAP, POLICY, {"data": {"policy": "new"}})
    assert await triggers.taken() == [GARDEN_KEY]


async def test_deleting_and_creating_a_named_secret_triggers_the_garden(triggers: Triggers) -> None:
    await triggers.client.delete(SECRET, NAMED)
    assert await triggers.taken() == [GARDEN_KEY]
    await triggers.client.create(manifest(SECRET, NAMED))
    assert await triggers.taken() == [GARDEN_KEY]


async def test_metadata_of_a_named_secret_do_not_trigger_the_garden(triggers: Triggers) -> None:
    marked = {"metadata": {"labels": {"any": "label"}, "annotations": {"any": "thing"}}}
    await triggers.client.patch(SECRET, NAMED, marked)
    assert await triggers.taken() == []


async def test_a_secret_that_no_garden_names_does_not_trigger_it(triggers: Triggers) -> None:
    await triggers.client.patch(SECRET, OTHER, data("new"))
    assert await triggers.taken() == []


async def test_a_secret_with_the_name_of_a_config_map_does_not_trigger_the_garden(
    triggers: Triggers,
) -> None:
    await triggers.client.create(manifest(SECRET, POLICY))
    assert await triggers.taken() == []
    await triggers.client.delete(SECRET, POLICY)


async def test_a_secret_triggers_the_garden_once_it_is_named(triggers: Triggers) -> None:
    sni: JsonObject = {"sni": {"secretName": OTHER.name}}
    named = {"spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": sni}}}}
    await triggers.client.patch(GARDEN, GARDEN_KEY, named)
    assert await triggers.taken() == []  # another trigger handles this change
    await triggers.client.patch(SECRET, OTHER, data("new"))
    assert await triggers.taken() == [GARDEN_KEY]
    await triggers.client.patch(SECRET, NAMED, data("unused by now"))
    assert await triggers.taken() == []


async def test_the_wildcard_certificate_triggers_the_garden(triggers: Triggers) -> None:
    label = {"labels": {"gardener.cloud/role": "garden-cert"}}
    await triggers.client.patch(SECRET, OTHER, {"metadata": label})
    assert await triggers.taken() == [GARDEN_KEY]
    await triggers.client.patch(SECRET, OTHER, data("renewed"))
    assert await triggers.taken() == [GARDEN_KEY]
    await triggers.client.delete(SECRET, OTHER)
    assert await triggers.taken() == [GARDEN_KEY]


async def test_an_ignored_garden_is_not_triggered(triggers: Triggers) -> None:
    pause = {"metadata": {"annotations": {"operator.gardener.cloud/ignore": "true"}}}
    await triggers.client.patch(GARDEN, GARDEN_KEY, pause)
    assert await triggers.taken() == []
    await triggers.client.patch(SECRET, NAMED, data("new"))
    assert await triggers.taken() == []


# Seeds, in a cluster that is the virtual one, too


def seed(name: str, domain: str, **labels: str) -> JsonObject:
    return {
        "apiVersion": SEED.api_version,
        "kind": SEED.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"ingress": {"domain": domain}},
    }


class Seeds:
    """A watch of Seeds, and the number of its reports."""

    def __init__(self, client: Client, watch: SeedWatch, unit: Unit) -> None:
        self.client = client
        self.watch = watch
        self.reports = 0
        self._unit = unit
        watch.changed.subscribe(self._count)

    async def reported(self, reports: int) -> None:
        """Wait until there were this many reports."""
        while self.reports < reports:
            await self.client.get_raw("/version")

    def _count(self, _: None) -> None:
        self.reports += 1


@pytest.fixture
async def seeds(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[Seeds]:
    definitions = [definition(SEED, scope="Cluster"), definition(MANAGED_SEED)]
    for each in definitions:
        await runtime.create(each)
    for kind in (SEED, MANAGED_SEED):
        await served(runtime, kind)
    kubeconfig = await asyncio.to_thread(Path(garden_sandbox.kubeconfig).read_bytes)
    content = base64.b64encode(kubeconfig).decode()
    key = Key("garden", "gardener-internal")
    await runtime.create(manifest(SECRET, key, data={"kubeconfig": content}))
    async with VirtualCluster(runtime) as virtual:
        watch = SeedWatch(virtual)
        unit = Unit("seeds", tasks=[watch.run])
        async with running(unit):
            await virtual.client()
            yield Seeds(runtime, watch, unit)
    await runtime.delete(SECRET, key)
    for each in definitions:
        await runtime.delete(CRD, Key.of(each))
        await until_gone(runtime, CRD, Key.of(each))


async def test_a_new_seed_is_reported_once(seeds: Seeds) -> None:
    seeds.watch.use(Used((), ""))
    await seeds.client.create(seed("one", "one.example.org"))
    await seeds.reported(1)
    # Nothing more is reported until the components use something else.
    await seeds.client.create(seed("two", "two.example.org"))
    seeds.watch.use(Used(("one.example.org",), ""))
    await seeds.reported(2)
    assert seeds.reports == 2


async def test_unused_parts_of_a_seed_are_not_reported(seeds: Seeds) -> None:
    seeds.watch.use(Used((), ""))
    private = {"seed.gardener.cloud/network": "private"}
    await seeds.client.create(seed("hidden", "hidden.example.org", **private))
    labels = {"metadata": {"labels": {"any": "label"}}}
    await seeds.client.patch(SEED, Key("", "hidden"), labels)
    await seeds.client.create(seed("open", "open.example.org"))
    await seeds.reported(1)
    assert seeds.reports == 1


async def test_a_seed_that_becomes_managed_is_reported(seeds: Seeds) -> None:
    seeds.watch.use(Used((), ""))
    await seeds.client.create(seed("one", "one.example.org"))
    await seeds.reported(1)
    seeds.watch.use(Used(("one.example.org",), ""))
    await seeds.client.create(manifest(MANAGED_SEED, Key("garden", "one")))
    await seeds.reported(2)


async def test_nothing_is_reported_before_the_first_reconciliation(seeds: Seeds) -> None:
    await seeds.client.create(seed("one", "one.example.org"))
    await seeds.client.create(seed("two", "two.example.org"))
    seeds.watch.use(Used((), ""))
    await seeds.reported(1)
    assert seeds.reports == 1
