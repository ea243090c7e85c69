"""Validation of extension objects, called by a real API server: spec 12 §15."""

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, deletion_timestamp_of
from pergola.kube.errors import Invalid, NotFound
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import Kind
from pergola.testing.waiting import until_gone
from tests.support.webhook_site import WebhookSite, valid

PLACED = {"spec.type", "spec.region", "spec.secretRef.name"}
REQUIRED: dict[str, set[str]] = {
    "BackupBucket": PLACED,
    "BackupEntry": PLACED | {"spec.bucketName"},
    "Bastion": {"spec.type", "spec.userData", "spec.ingress"},
    "ContainerRuntime": {"spec.type", "spec.binaryPath", "spec.workerPool.name"},
    "ControlPlane": PLACED,
    "DNSRecord": {
        "spec.type",
        "spec.secretRef.name",
        "spec.name",
        "spec.recordType",
        "spec.values",
    },
    "Extension": {"spec.type"},
    "Infrastructure": PLACED,
    "Network": {"spec.type", "spec.podCIDR", "spec.serviceCIDR"},
    "OperatingSystemConfig": {"spec.purpose"},
    "SelfHostedShootExposure": {"spec.type", "spec.port", "spec.endpoints"},
    "Worker": PLACED,
    "Etcd": {"spec.backup.store.prefix", "spec.backup.store.provider"},
}
NOTHING_GOOD: dict[str, JsonObject] = {
    "Etcd": {"backup": {"store": {"prefix": "other", "provider": "nobody"}}},
}
IMMUTABLE: dict[str, tuple[str, JsonObject]] = {
    "DNSRecord": ("spec.name", {"name": "b.example.org"}),
    "Network": ("spec.podCIDR", {"podCIDR": "10.3.0.0/16"}),
    "OperatingSystemConfig": ("spec.purpose", {"purpose": "provision"}),
    "Etcd": ("spec.backup.store.prefix", {"backup": {"store": {"prefix": "else"}}}),
}
INFRASTRUCTURE = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Infrastructure")
WAIT = "example.org/wait"


def gvk_of(kind: Kind) -> GroupVersionKind:
    return GroupVersionKind(kind.group, "v1alpha1", kind.kind)


def fields(error: Invalid) -> set[str]:
    return {cause["field"] for cause in error.causes}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_all_missing_fields_are_reported_at_once_and_nothing_is_stored(
    runtime: WebhookSite, kind: Kind
) -> None:
    obj = valid(gvk_of(kind), await runtime.add_namespace())
    obj["spec"] = NOTHING_GOOD.get(kind.kind, {})
    with pytest.raises(Invalid) as caught:
        await runtime.client.create(obj)
    assert fields(caught.value) == REQUIRED[kind.kind]
    text = str(caught.value)
    assert f'"validation.extensions.{kind.plural}.resources.gardener.cloud" denied' in text
    assert all(field in text for field in REQUIRED[kind.kind])
    with pytest.raises(NotFound):
        await runtime.client.get(gvk_of(kind), Key.of(obj))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_immutable_fields_cannot_be_changed_and_others_can(
    runtime: WebhookSite, kind: Kind
) -> None:
    gvk, namespace = gvk_of(kind), await runtime.add_namespace()
    obj = valid(gvk, namespace, f"x-{namespace}")
    if kind.kind == "Etcd":
        prefix = f"{namespace}/x-{namespace}"
        obj["spec"] = {"backup": {"store": {"prefix": prefix, "provider": "aws"}}}
    created = await runtime.client.create(obj)
    field, change = IMMUTABLE.get(kind.kind, ("spec.type", {"type": "other"}))
    with pytest.raises(Invalid) as caught:
        await runtime.client.patch(gvk, Key.of(obj), {"spec": change})
    assert field in fields(caught.value)
    assert "field is immutable" in str(caught.value)
    assert await runtime.client.get(gvk, Key.of(obj)) == created
    provided = {"spec": {"providerConfig": {"x": "y"}}, "metadata": {"labels": {"a": "b"}}}
    changed = await runtime.client.patch(gvk, Key.of(obj), provided)
    assert changed["spec"]["providerConfig"] == {"x": "y"}


async def test_a_status_is_written_without_a_review(runtime: WebhookSite) -> None:
    gvk = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "OperatingSystemConfig")
    obj = valid(gvk, await runtime.add_namespace())
    await runtime.client.create(obj)
    units = {"status": {"extensionUnits": [{"content": "a unit needs a name"}]}}
    patched = await runtime.client.patch(gvk, Key.of(obj), units, subresource="status")
    assert patched["status"] == units["status"]


async def test_a_dry_run_gets_the_same_verdict(runtime: WebhookSite) -> None:
    obj = valid(INFRASTRUCTURE, await runtime.add_namespace())
    assert (await runtime.client.create(obj, dry_run=True))["spec"] == obj["spec"]
    del obj["spec"]["region"]
    with pytest.raises(Invalid, match=r"spec\.region: Required value: field is required"):
        await runtime.client.create(obj, dry_run=True)


async def test_the_spec_of_an_object_under_deletion_is_immutable(runtime: WebhookSite) -> None:
    obj = valid(INFRASTRUCTURE, await runtime.add_namespace())
    obj["metadata"]["finalizers"] = [WAIT]
    obj["metadata"]["annotations"] = {"confirmation.gardener.cloud/deletion": "true"}
    key = Key.of(await runtime.client.create(obj))
    await runtime.client.delete(INFRASTRUCTURE, key)
    change = {"spec": {"secretRef": {"name": "other"}}}
    with pytest.raises(Invalid, match=r"secretRef.name: .*other.* != ") as caught:
        await runtime.client.patch(INFRASTRUCTURE, key, change)
    assert fields(caught.value) == {"spec"}
    await runtime.client.patch(INFRASTRUCTURE, key, {"metadata": {"annotations": {"a": "b"}}})
    await runtime.client.patch(INFRASTRUCTURE, key, {"metadata": {"finalizers": None}})
    await until_gone(runtime.client, INFRASTRUCTURE, key)


async def test_an_old_object_that_violates_newer_rules_can_be_finalized(site: WebhookSite) -> None:
    obj = valid(INFRASTRUCTURE, await site.add_namespace())
    obj["metadata"]["finalizers"] = [WAIT]
    obj["metadata"]["annotations"] = {"confirmation.gardener.cloud/deletion": "true"}
    del obj["spec"]["region"]
    key = Key.of(await site.client.create(obj))  # no webhook is registered yet
    async with site.serving():
        await site.effective(lambda: site.validates(key.namespace))
        with pytest.raises(Invalid, match=r"spec\.region"):
            await site.client.create(obj | {"metadata": {**obj["metadata"], "name": "other"}})
        await site.client.patch(INFRASTRUCTURE, key, {"metadata": {"labels": {"a": "b"}}})
        await site.client.delete(INFRASTRUCTURE, key)
        live = await site.client.get(INFRASTRUCTURE, key)
        assert deletion_timestamp_of(live) is not None
        await site.client.patch(INFRASTRUCTURE, key, {"metadata": {"finalizers": None}})
        await until_gone(site.client, INFRASTRUCTURE, key)


async def test_nothing_is_validated_in_a_target(target: WebhookSite) -> None:
    obj = valid(INFRASTRUCTURE, await target.add_namespace()) | {"spec": {}}
    assert (await target.client.create(obj))["spec"] == {}
