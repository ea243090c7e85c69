"""Objects that a Garden or an Extension names are protected while they are in use (spec 21 §4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, EVENT, NAMESPACE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    uid_of,
)
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.controllers.references import reference_protection
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.operator.copies import Copies
from pergola.operator.extension.references import EXTENSION_REFERENCES
from pergola.operator.run.references import GARDEN_REFERENCES
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import packed, packed_metadata
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE, running, settled, until, until_gone
from pergola.testing.world import RecordingClient
from tests.support.gardens import GARDENER, MINIMAL, SERVER, VIRTUAL, with_values

PROTECTION: Final = marks.REFERENCE_PROTECTION
HANDLED: Final = marks.OPERATOR_FINALIZER
FOREIGN: Final = "example.org/foreign"
MINE: Final = Key("", "minimal")
EXTENSION_KEY: Final = Key("", "provider")
SNI: Final = f"{SERVER}.sni"
BACKUP: Final = f"{VIRTUAL}.etcd"


def secret(name: str) -> Key:
    return Key("garden", name)


def manifest(gvk: GroupVersionKind, key: Key, **metadata: Any) -> JsonObject:
    named = {"namespace": key.namespace, "name": key.name, **metadata}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": named}


def garden(*finalizers: str, **names: str | None) -> JsonObject:
    """Return a Garden that names Secrets: `sni`, `backup`."""
    values: dict[str, Any] = {}
    if name := names.get("sni"):
        values[SNI] = {"secretName": name}
    if name := names.get("backup"):
        values[BACKUP] = {
            "main": {"backup": {"provider": "x", "bucketName": "b", "secretRef": {"name": name}}}
        }
    changed = with_values(MINIMAL, values)
    changed["metadata"]["finalizers"] = list(finalizers)
    return changed


def extension(*names: str) -> JsonObject:
    resources = [
        {"name": name, "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}}
        for name in names
    ]
    return {
        **manifest(EXTENSION, EXTENSION_KEY),
        "spec": {"deployment": {"resources": resources}},
    }


def is_protected(obj: JsonObject) -> bool:
    return PROTECTION in finalizers_of(obj)


def is_released(obj: JsonObject) -> bool:
    return not is_protected(obj)


class Site:
    """A cluster with the controllers, whose writes are recorded."""

    def __init__(self, client: Client, recorder: RecordingClient) -> None:
        self.client = client
        self._recorder = recorder
        self._unit: Unit | None = None
        self.metrics = Metrics()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the controllers as the operator does, for Gardens and Extensions."""
        copies = Copies(self._recorder)
        kinds = (GARDEN_REFERENCES, EXTENSION_REFERENCES)
        self._unit = reference_protection(
            copies.client,
            {referrer: copies.of(referrer.gvk) for referrer in kinds},
            {gvk.kind: copies.of(gvk, "garden") for gvk in (SECRET, CONFIG_MAP)},
            metrics=self.metrics,
        )
        async with running(copies.unit, self._unit):
            yield

    async def writes(self) -> set[str]:
        """Wait until the queues are empty; return the writes since the last call, no Events."""
        assert self._unit is not None
        await settled(self._unit, self.client)
        return {write for write in self._recorder.taken() if " Event " not in write}

    async def create(self, *objects: JsonObject) -> None:
        for obj in objects:
            await self.client.create(obj)

    async def secrets(self, *names: str) -> None:
        await self.create(*(manifest(SECRET, secret(name)) for name in names))

    async def protected(self, *names: str) -> None:
        """Wait until Secrets are protected."""
        for name in names:
            await until(self.client, SECRET, secret(name), is_protected)

    async def released(self, *names: str) -> None:
        """Wait until Secrets are not protected."""
        for name in names:
            await until(self.client, SECRET, secret(name), is_released)

    def counted(self, kind: str) -> float | None:
        """Return the number of protected objects of a kind from the metric."""
        labels = {"kind": kind}
        return self.metrics.registry.get_sample_value("pergola_protected_objects", labels)

    async def finalizers(self, gvk: GroupVersionKind, key: Key) -> list[str]:
        return finalizers_of(await self.client.get(gvk, key))


@pytest.fixture
async def site(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[Site]:
    async with RecordingClient.connect(load(garden_sandbox.kubeconfig)) as recorder:
        yield Site(runtime, recorder)
    released: JsonObject = {"metadata": {"finalizers": None}}
    for gvk in (GARDEN, EXTENSION, SECRET, CONFIG_MAP):
        for obj in await runtime.list(gvk, "garden" if gvk in (SECRET, CONFIG_MAP) else None):
            if deletion_timestamp_of(obj) is None:
                await runtime.delete(gvk, Key.of(obj))
            if finalizers_of(obj):
                await runtime.patch(gvk, Key.of(obj), released)


async def test_a_garden_without_references_is_left_alone(site: Site) -> None:
    await site.create(garden(HANDLED))
    await site.secrets("any")
    async with site.running():
        assert await site.writes() == set()
        await site.client.patch(GARDEN, MINE, {"metadata": {"labels": {"any": "label"}}})
        assert await site.writes() == set()
    assert await site.finalizers(GARDEN, MINE) == [HANDLED]


def everything() -> tuple[JsonObject, list[tuple[GroupVersionKind, Key]]]:
    """Return a Garden that names an object in each field, and these objects."""
    found: list[tuple[GroupVersionKind, Key]] = []

    def named(kind: GroupVersionKind, name: str) -> str:
        found.append((kind, Key("garden", name)))
        return name

    def server(name: str) -> JsonObject:
        policy = {"configMapRef": {"name": named(CONFIG_MAP, f"{name}-policy")}}
        plugin = {"name": "x", "kubeconfigSecretName": named(SECRET, f"{name}-plugin")}
        return {
            "admissionPlugins": [plugin],
            "auditConfig": {"auditPolicy": policy},
            "auditWebhook": {"kubeconfigSecretName": named(SECRET, f"{name}-audit")},
        }

    authorization = {
        "configMapName": named(CONFIG_MAP, "authorization"),
        "kubeconfigs": [{"authorizerName": "x", "secretName": named(SECRET, "authorizer")}],
    }
    kube = {
        **server("kube"),
        "authentication": {
            "webhook": {"kubeconfigSecretName": named(SECRET, "authentication")},
        },
        "sni": {"secretName": named(SECRET, "sni")},
        "structuredAuthentication": {"configMapName": named(CONFIG_MAP, "authentication")},
        "structuredAuthorization": authorization,
    }
    dashboard = {
        "frontendConfigMapRef": {"name": named(CONFIG_MAP, "frontend")},
        "assetsConfigMapRef": {"name": named(CONFIG_MAP, "assets")},
        "gitHub": {
            "apiURL": "x",
            "organisation": "x",
            "repository": "x",
            "secretRef": {"name": named(SECRET, "github")},
        },
        "oidcConfig": {
            "secretRef": {"name": named(SECRET, "oidc")},
            "certificateAuthoritySecretRef": {"name": named(SECRET, "oidc-ca")},
        },
        "tlsSecretName": named(SECRET, "dashboard-tls"),
    }
    resources = [
        {
            "name": f"{kind.kind}-{name}".lower(),
            "resourceRef": {"apiVersion": "v1", "kind": kind.kind, "name": named(kind, name)},
        }
        for kind, name in ((SECRET, "for-extensions"), (CONFIG_MAP, "for-extensions"))
    ]
    dns = {"name": "x", "type": "x", "secretRef": {"name": named(SECRET, "dns")}}
    backup = {"provider": "x", "bucketName": "b", "secretRef": {"name": named(SECRET, "backup")}}
    values: dict[str, Any] = {
        SERVER: kube,
        f"{GARDENER}.gardenerAPIServer": server("gardener"),
        f"{GARDENER}.gardenerDashboard": dashboard,
        f"{GARDENER}.gardenerDiscoveryServer": {"tlsSecretName": named(SECRET, "discovery")},
        BACKUP: {"main": {"backup": backup}},
        "spec.dns": {"providers": [dns]},
        "spec.resources": resources,
    }
    return with_values(MINIMAL, values), found


async def test_all_objects_that_a_garden_names_are_protected_and_no_others(
    site: Site, namespace: str
) -> None:
    # The namespace of the fixture is in another cluster; here it is only an unused name.
    elsewhere = Key(f"{namespace}-elsewhere", "sni")
    await site.create(manifest(NAMESPACE, Key("", elsewhere.namespace)))
    await site.create(manifest(SECRET, elsewhere))
    obj, named = everything()
    await site.create(*(manifest(*each) for each in named), obj)
    await site.secrets("unused", "frontend")
    async with site.running():
        for gvk, key in named:
            await until(site.client, gvk, key, is_protected)
        await until(site.client, GARDEN, MINE, is_protected)
        expected = {f"patch {gvk.kind} {key}" for gvk, key in named} | {f"patch Garden {MINE}"}
        assert await site.writes() == expected
    for key in (elsewhere, secret("unused"), secret("frontend")):
        assert await site.finalizers(SECRET, key) == []
    await site.client.delete(SECRET, elsewhere)
    await site.client.delete(NAMESPACE, Key("", elsewhere.namespace))


async def test_a_restart_writes_nothing(site: Site) -> None:
    await site.secrets("a", "b")
    await site.create(garden(HANDLED, sni="a", backup="b"))
    async with site.running():
        await site.protected("a", "b")
        await until(site.client, GARDEN, MINE, is_protected)
        await site.writes()
    async with site.running():
        assert await site.writes() == set()
        content = {"data": {"key": "bmV3"}, "metadata": {"labels": {"any": "label"}}}
        await site.client.patch(SECRET, secret("a"), content)
        assert await site.writes() == set()


async def test_an_object_that_is_no_longer_named_is_released_and_may_be_deleted(site: Site) -> None:
    await site.secrets("a", "b")
    await site.create(garden(HANDLED, sni="a", backup="b"))
    async with site.running():
        await site.protected("a", "b")
        await site.writes()
        assert (site.counted("Secret"), site.counted("ConfigMap")) == (2, 0)
        await site.client.delete(SECRET, secret("a"))
        assert deletion_timestamp_of(await site.client.get(SECRET, secret("a")))

        await edit(site, {SNI: None})
        await until_gone(site.client, SECRET, secret("a"))
        assert PROTECTION in await site.finalizers(GARDEN, MINE)
        assert PROTECTION in await site.finalizers(SECRET, secret("b"))

        await edit(site, {BACKUP: None})
        await site.released("b")
        await until(site.client, GARDEN, MINE, is_released)
        assert await site.finalizers(GARDEN, MINE) == [HANDLED]
        await site.writes()
        assert site.counted("Secret") == 0


async def test_a_secret_named_by_two_fields_is_protected_by_either(site: Site) -> None:
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a", backup="a"))
    async with site.running():
        await site.protected("a")
        await site.writes()
        await edit(site, {SNI: None})
        assert await site.writes() == set()
        assert PROTECTION in await site.finalizers(SECRET, secret("a"))


@pytest.mark.parametrize("first", ["garden", "extension"])
async def test_a_secret_is_protected_until_its_last_referrer_is_deleted(
    site: Site, first: str
) -> None:
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a"), extension("a"))
    async with site.running():
        await site.protected("a")
        await until(site.client, GARDEN, MINE, is_protected)
        await until(site.client, EXTENSION, EXTENSION_KEY, is_protected)
        leave: dict[str, Callable[[], Awaitable[object]]] = {
            "garden": lambda: edit(site, {SNI: None}),
            "extension": lambda: site.client.patch(
                EXTENSION, EXTENSION_KEY, {"spec": {"deployment": {"resources": None}}}
            ),
        }
        await site.writes()
        await leave.pop(first)()
        gone = {"garden": f"Garden {MINE}", "extension": f"Extension {EXTENSION_KEY}"}
        assert await site.writes() == {f"patch {gone[first]}"}
        assert PROTECTION in await site.finalizers(SECRET, secret("a"))

        for last in leave.values():
            await last()
        await site.released("a")


async def test_a_missing_object_is_reported_and_protected_once_it_exists(site: Site) -> None:
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a", backup="missing"))
    async with site.running():
        await site.protected("a")
        await until(site.client, GARDEN, MINE, is_protected)
        note = await reported(site.client, "ReferenceMissing")
        field = "spec.virtualCluster.etcd.main.backup.secretRef.name"
        assert note.startswith(f"Secret garden/missing, which {field} names, does not exist")
        await site.secrets("missing")
        await site.protected("missing")


async def test_a_garden_that_names_only_missing_objects_is_not_protected(site: Site) -> None:
    await site.create(garden(HANDLED, sni="missing"))
    async with site.running():
        assert await site.writes() == set()


async def test_references_are_protected_until_the_deletion_flow_has_ended(site: Site) -> None:
    """The flow may need credentials for backups and DNS records until its end."""
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a"))
    async with site.running():
        await site.protected("a")
        await until(site.client, GARDEN, MINE, is_protected)
        await site.client.delete(GARDEN, MINE)
        await site.writes()
        assert PROTECTION in await site.finalizers(SECRET, secret("a"))

        await set_finalizers(site.client, GARDEN, MINE, [PROTECTION])
        await until_gone(site.client, GARDEN, MINE)
        await site.released("a")


async def test_a_garden_that_was_deleted_during_an_outage_is_released_at_the_start(
    site: Site,
) -> None:
    await site.create(manifest(SECRET, secret("a"), finalizers=[FOREIGN, PROTECTION]))
    await site.create(garden(HANDLED, PROTECTION, FOREIGN, sni="a"))
    await site.client.delete(GARDEN, MINE)
    await set_finalizers(site.client, GARDEN, MINE, [PROTECTION, FOREIGN])
    async with site.running():
        await site.released("a")
        await until(site.client, GARDEN, MINE, is_released)
    assert await site.finalizers(SECRET, secret("a")) == [FOREIGN]
    assert await site.finalizers(GARDEN, MINE) == [FOREIGN]


async def test_protection_that_a_deleted_garden_left_is_removed_at_the_start(site: Site) -> None:
    """A user may have removed the finalizers of the Garden by hand."""
    await site.create(manifest(SECRET, secret("a"), finalizers=[PROTECTION]))
    await site.create(manifest(CONFIG_MAP, secret("b"), finalizers=[PROTECTION]))
    async with site.running():
        await site.released("a")
        await until(site.client, CONFIG_MAP, secret("b"), is_released)


async def test_the_objects_of_a_garden_are_released_before_the_garden(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the operator, nothing would release the Secret later."""
    order: list[str] = []
    await site.secrets("a")
    await site.create(garden(sni="a"))
    patch = RecordingClient.patch

    async def noting(self: RecordingClient, *args: Any, **more: Any) -> JsonObject:
        answer = await patch(self, *args, **more)
        if not is_protected(answer):
            order.append(args[0].kind)
        return answer

    monkeypatch.setattr(RecordingClient, "patch", noting)
    async with site.running():
        await site.protected("a")
        await until(site.client, GARDEN, MINE, is_protected)
        await site.client.delete(GARDEN, MINE)
        await until_gone(site.client, GARDEN, MINE)
        await site.writes()  # the last answer may come after the event
    assert order == ["Secret", "Garden"]


async def test_an_object_under_deletion_cannot_be_protected(site: Site) -> None:
    await site.create(manifest(SECRET, secret("a"), finalizers=[FOREIGN]))
    await site.client.delete(SECRET, secret("a"))
    await site.create(garden(HANDLED, sni="a"))
    async with site.running():
        assert await site.writes() == {f"patch Garden {MINE}"}


async def test_concurrent_changes_of_foreign_finalizers_are_not_lost(site: Site) -> None:
    """Each write contains the resourceVersion of the decision."""
    await site.secrets("a")
    others = [f"example.org/{number}" for number in range(20)]

    async def add_all() -> None:
        for finalizer in others:
            await add_finalizer(site.client, SECRET, secret("a"), finalizer)

    async with site.running(), asyncio.TaskGroup() as group:
        group.create_task(add_all())
        for _ in range(3):
            await site.create(garden(sni="a"))
            await site.protected("a")
            await until(site.client, GARDEN, MINE, is_protected)
            await site.client.delete(GARDEN, MINE)
            await until_gone(site.client, GARDEN, MINE)
            await site.released("a")
    assert set(await site.finalizers(SECRET, secret("a"))) == {*others}


async def test_metadata_is_enough_to_protect_secrets(runtime: Client, site: Site) -> None:
    """A process without caches of whole Secrets watches only their metadata."""
    gardens = Cache(runtime, GARDEN, packed)
    caches = {
        gvk.kind: Cache(runtime, gvk, packed_metadata, namespace="garden", metadata_only=True)
        for gvk in (SECRET, CONFIG_MAP)
    }
    unit = reference_protection(runtime, {GARDEN_REFERENCES: gardens}, caches, metrics=Metrics())
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a"))
    async with running(Unit("caches", caches=(gardens, *caches.values())), unit):
        await site.protected("a")
        await edit(site, {SNI: None})
        await site.released("a")


async def test_the_permissions_of_the_chart_are_enough(site: Site, granted: ClusterConfig) -> None:
    await site.secrets("a")
    await site.create(garden(HANDLED, sni="a"))
    async with RecordingClient.connect(granted) as operator:
        limited = Site(site.client, operator)
        async with limited.running():
            await site.protected("a")
            await until(site.client, GARDEN, MINE, is_protected)
            await edit(site, {SNI: None})
            await site.released("a")
            await until(site.client, GARDEN, MINE, is_released)


async def edit(site: Site, values: dict[str, None]) -> None:
    """Remove values of the Garden at dotted paths."""
    for path in values:
        patch: Any = None
        for step in reversed(path.split(".")):
            patch = {step: patch}
        await site.client.patch(GARDEN, MINE, patch)


async def set_finalizers(
    client: Client, gvk: GroupVersionKind, key: Key, finalizers: Iterable[str]
) -> None:
    await client.patch(gvk, key, {"metadata": {"finalizers": list(finalizers)}})


async def add_finalizer(client: Client, gvk: GroupVersionKind, key: Key, finalizer: str) -> None:
    """Add a finalizer, and retry when another writer was first."""
    while True:
        live = await client.get(gvk, key)
        metadata = {
            "finalizers": [*finalizers_of(live), finalizer],
            "resourceVersion": live["metadata"]["resourceVersion"],
        }
        try:
            await client.patch(gvk, key, {"metadata": metadata})
        except Conflict:
            continue
        return


async def reported(client: Client, reason: str) -> str:
    """Wait for an Event about the Garden, perhaps of an earlier test, and return its note."""
    uid = uid_of(await client.get(GARDEN, MINE))
    async with asyncio.timeout(PATIENCE):
        while True:
            for event in await client.list(EVENT, "default"):
                if event.get("reason") == reason and event["regarding"].get("uid") == uid:
                    return str(event["note"])
