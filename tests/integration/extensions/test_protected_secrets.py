"""Secrets and namespaces that extension resources depend on: finalizers, and changes."""

import secrets
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, finalizers_of
from pergola.extension_api.kinds import DNS_RECORD
from pergola.extensions.lifecycle import Settings
from pergola.kube.client import Client
from pergola.runtime.controlling.unit import Unit
from pergola.testing.crds import install_extension_crds, install_garden_extension_crds, served
from pergola.testing.extension_site import ExtensionSite, RecordingActuator
from pergola.testing.waiting import running, settled, until, until_gone

SPEC: JsonObject = {
    "class": "garden",
    "name": "api.example.org",
    "recordType": "A",
    "values": ["192.0.2.1"],
}


@pytest.fixture
async def site(cluster_client: Client, namespace: str) -> AsyncIterator[ExtensionSite]:
    await install_extension_crds(cluster_client)
    await install_garden_extension_crds(cluster_client)
    await served(cluster_client, DNS_RECORD.gvk)
    site = ExtensionSite(cluster_client, namespace, DNS_RECORD.gvk)
    await put_secret(site, "one")
    yield site
    await site.clean_up()


def another(site: ExtensionSite) -> ExtensionSite:
    """Return the site of a second resource, of the same type and namespace."""
    other = ExtensionSite(site.client, site.namespace, site.gvk, site.type)
    other.key = Key(site.namespace, "another")
    return other


def recording(site: ExtensionSite) -> RecordingActuator:
    class Own(RecordingActuator):
        kind = "DNSRecord"
        type = site.type
        protects_secret = True

    return Own()


def controller(site: ExtensionSite, actuator: RecordingActuator, *, annotated: bool = True) -> Unit:
    settings = Settings(classes=("garden",), ignore_operation_annotation=not annotated)
    return site.unit(actuator, settings)


async def put_secret(site: ExtensionSite, value: str) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "credentials", "namespace": site.namespace},
        "stringData": {"key": value},
    }
    await site.client.apply(secret, manager="pergola-testing", force=True)


async def ask(site: ExtensionSite, operation: str = "reconcile") -> None:
    secret = {"name": "credentials", "namespace": site.namespace}
    await site.create(operation, spec={**SPEC, "secretRef": secret})


async def finalizers(site: ExtensionSite) -> list[str]:
    return finalizers_of(await site.client.get(SECRET, secret_key(site)))


def secret_key(site: ExtensionSite) -> Key:
    return Key(site.namespace, "credentials")


async def test_a_secret_is_protected_until_the_last_resource_that_needs_it_is_deleted(
    site: ExtensionSite,
) -> None:
    other = another(site)
    async with running(controller(site, recording(site))):
        for each in (site, other):
            await ask(each)
            await each.until_operation("Create")
        await site.client.delete(SECRET, secret_key(site))
        await site.delete()
        await site.until_gone()
        between = await finalizers(site)
        await other.delete()
        await other.until_gone()
        await until_gone(site.client, SECRET, secret_key(site))

    assert between == ["extensions.gardener.cloud/dnsrecord"]


async def test_a_secret_is_released_when_its_resource_is_migrated(site: ExtensionSite) -> None:
    async with running(controller(site, recording(site))):
        await ask(site)
        await site.until_operation("Create")
        protected = await finalizers(site)
        await site.annotate("migrate")
        await until(site.client, SECRET, secret_key(site), lambda obj: not finalizers_of(obj))

    assert protected == ["extensions.gardener.cloud/dnsrecord"]


async def test_a_foreign_finalizer_is_kept(site: ExtensionSite) -> None:
    foreign = {"metadata": {"finalizers": ["example.org/theirs"]}}
    await site.client.patch(SECRET, secret_key(site), foreign)
    async with running(controller(site, recording(site))):
        await ask(site)
        await site.until_operation("Create")
        both = await finalizers(site)
        await site.delete()
        await site.until_gone()

    assert both == ["example.org/theirs", "extensions.gardener.cloud/dnsrecord"]
    assert await finalizers(site) == ["example.org/theirs"]
    await site.client.patch(SECRET, secret_key(site), {"metadata": {"finalizers": []}})


async def test_without_callers_a_changed_secret_triggers_the_resources_that_need_it(
    site: ExtensionSite,
) -> None:
    actuator = recording(site)
    unit = controller(site, actuator, annotated=False)
    async with running(unit):
        for cache in unit.caches:
            await cache.synced()
        await ask(site, "")
        await site.until_operation("Create")
        first = actuator.taken()
        await put_secret(site, "two")
        await site.until_operation("Reconcile")

    assert first == ["reconcile"]
    assert actuator.taken() == ["reconcile"]


async def test_with_callers_a_changed_secret_takes_effect_at_their_next_request(
    site: ExtensionSite,
) -> None:
    actuator = recording(site)
    async with running(controller(site, actuator)):
        await ask(site)
        await site.until_operation("Create")
        await put_secret(site, "two")
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")

    assert actuator.taken() == ["reconcile", "reconcile"]


@pytest.mark.parametrize("annotated", [False, True])
async def test_without_callers_the_namespace_of_the_cluster_triggers_when_it_appears_or_changes(
    site: ExtensionSite, *, annotated: bool
) -> None:
    name = f"later-{secrets.token_hex(4)}"

    class Own(RecordingActuator):
        kind = "DNSRecord"
        type = site.type
        follows_namespace = True

        @classmethod
        def cluster_name(cls, key: Key) -> str:
            return name

    actuator = Own()
    unit = controller(site, actuator, annotated=annotated)
    async with running(unit):
        await ask(site, "reconcile" if annotated else "")
        await site.until_operation("Create")
        await settled(unit, site.client)
        first = actuator.taken()
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        }
        await site.client.create(namespace)
        await settled(unit, site.client)
        appeared = actuator.taken()
        await site.client.patch(NAMESPACE, Key("", name), {"metadata": {"labels": {"a": "b"}}})
        await settled(unit, site.client)
        changed = actuator.taken()
    await site.client.delete(NAMESPACE, Key("", name))

    assert first == ["reconcile"]
    assert bool(appeared) is not annotated
    assert bool(changed) is not annotated
