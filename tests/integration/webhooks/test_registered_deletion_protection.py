"""Deletion protection, called by a real API server: spec 12 §14."""

import asyncio
import re
import secrets

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, CRD, EVENT, NAMESPACE, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, deletion_timestamp_of, uid_of
from pergola.extension_api.kinds import CONTROL_PLANE
from pergola.kube.errors import Forbidden, NotFound
from pergola.resource_manager.webhooks.deletion_protection import PROTECTED
from pergola.testing.crds import definition
from pergola.testing.waiting import PATIENCE, until, until_gone
from tests.support.documented.symptoms import symptom
from tests.support.webhook_site import WebhookSite, pod, valid

EXTENSIONS = "extensions.gardener.cloud"
NETWORK = GroupVersionKind(EXTENSIONS, "v1alpha1", "Network")
REFUSAL = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
KINDS = [
    GroupVersionKind(resource.group, resource.version, kind)
    for resource, kind in PROTECTED.items()
    if kind != "CustomResourceDefinition"
]


async def confirm(site: WebhookSite, gvk: GroupVersionKind, key: Key, value: str = "true") -> None:
    annotations = {marks.CONFIRMATION_DELETION: value}
    await site.client.patch(gvk, key, {"metadata": {"annotations": annotations}})


def same_state(one: JsonObject, other: JsonObject) -> bool:
    return bool(one["metadata"]["resourceVersion"] == other["metadata"]["resourceVersion"])


@pytest.mark.parametrize("gvk", KINDS, ids=lambda gvk: gvk.kind)
async def test_an_object_without_confirmation_is_not_deleted(
    runtime: WebhookSite, gvk: GroupVersionKind
) -> None:
    namespace = await runtime.add_namespace()
    created = await runtime.client.create(valid(gvk, namespace, secrets.token_hex(4)))
    key = Key.of(created)
    for propagation in ("Foreground", "Background", "Orphan"):
        with pytest.raises(Forbidden) as caught:
            await runtime.client.delete(gvk, key, propagation=propagation)
        assert REFUSAL in str(caught.value)
        assert str(key) in str(caught.value)
    assert same_state(created, await runtime.client.get(gvk, key))
    await confirm(runtime, gvk, key, "yes")
    with pytest.raises(Forbidden, match="yes"):
        await runtime.client.delete(gvk, key)
    await confirm(runtime, gvk, key)
    assert await runtime.client.delete(gvk, key)


async def test_a_dry_run_has_the_same_outcome_as_a_deletion(runtime: WebhookSite) -> None:
    namespace = await runtime.add_namespace()
    created = await runtime.client.create(valid(NETWORK, namespace))
    with pytest.raises(Forbidden, match="annotation to delete"):
        await runtime.ask("DELETE", NETWORK, Key.of(created), dryRun="All")
    await confirm(runtime, NETWORK, Key.of(created))
    await runtime.ask("DELETE", NETWORK, Key.of(created), dryRun="All")
    assert uid_of(await runtime.client.get(NETWORK, Key.of(created))) == uid_of(created)


async def test_an_object_that_waits_for_its_finalizer_is_still_protected(
    runtime: WebhookSite,
) -> None:
    obj = valid(NETWORK, await runtime.add_namespace())
    obj["metadata"]["finalizers"] = ["example.org/wait"]
    obj["metadata"]["annotations"] = {marks.CONFIRMATION_DELETION: "true"}
    key = Key.of(await runtime.client.create(obj))
    assert not await runtime.client.delete(NETWORK, key)
    nothing = {"metadata": {"annotations": {marks.CONFIRMATION_DELETION: None}}}
    await runtime.client.patch(NETWORK, key, nothing)
    with pytest.raises(Forbidden, match="annotation to delete"):
        await runtime.client.delete(NETWORK, key)
    await runtime.client.patch(NETWORK, key, {"metadata": {"finalizers": None}})
    await until_gone(runtime.client, NETWORK, key)


# Collections: everything, or nothing


async def names(site: WebhookSite, namespace: str) -> list[str]:
    found = await site.client.list(NETWORK, namespace)
    return sorted(obj["metadata"]["name"] for obj in found)


async def test_nothing_of_a_collection_with_one_unconfirmed_object_is_deleted(
    runtime: WebhookSite,
) -> None:
    namespace = await runtime.add_namespace()
    for name in ("a", "b", "c"):
        key = Key.of(await runtime.client.create(valid(NETWORK, namespace, name)))
        if name != "c":  # the last one: the others are deleted first
            await confirm(runtime, NETWORK, key)
    with pytest.raises(
        Forbidden, match=rf"Network (in namespace {namespace}|{namespace}/c) has none"
    ):
        await runtime.ask("DELETE", NETWORK, Key(namespace, ""))
    assert await names(runtime, namespace) == ["a", "b", "c"]


async def test_a_confirmed_collection_is_deleted(runtime: WebhookSite) -> None:
    namespace, other = await runtime.add_namespace(), await runtime.add_namespace()
    await runtime.client.create(valid(NETWORK, other))
    for name in ("a", "b", "c"):
        key = Key.of(await runtime.client.create(valid(NETWORK, namespace, name)))
        await confirm(runtime, NETWORK, key)
    await runtime.ask("DELETE", NETWORK, Key(namespace, ""))
    assert await names(runtime, namespace) == []
    assert await names(runtime, other) == ["x"]


async def test_an_empty_collection_is_deleted(runtime: WebhookSite) -> None:
    await runtime.ask("DELETE", NETWORK, Key(await runtime.add_namespace(), ""))


# CustomResourceDefinitions are protected by a label


async def add_crd(site: WebhookSite, kind: str, *, protected: bool) -> Key:
    crd = definition(GroupVersionKind("deletion.example.org", "v1", kind))
    crd["metadata"]["labels"] = {"suite": "deletion"}
    if protected:
        crd["metadata"]["labels"][marks.DELETION_PROTECTED] = "true"
    await site.add_definitions([crd])
    return Key.of(crd)


async def test_definitions_are_protected_by_their_label(runtime: WebhookSite) -> None:
    free = await add_crd(runtime, "Free", protected=False)
    held = await add_crd(runtime, "Held", protected=True)
    await runtime.client.delete(CRD, free)
    with pytest.raises(Forbidden, match="annotation to delete"):
        await runtime.client.delete(CRD, held)
    assert deletion_timestamp_of(await runtime.client.get(CRD, held)) is None
    await confirm(runtime, CRD, held)
    await runtime.client.delete(CRD, held)
    await until_gone(runtime.client, CRD, held)


async def test_deleting_all_definitions_requires_confirmation_only_of_protected_ones(
    runtime: WebhookSite,
) -> None:
    one = await add_crd(runtime, "One", protected=True)
    two = await add_crd(runtime, "Two", protected=True)
    free = await add_crd(runtime, "Free", protected=False)
    protected = await runtime.client.list(CRD, labels=f"{marks.DELETION_PROTECTED}=true")
    # Confirm those of other tests, too: the webhook does not see the selector.
    for key in map(Key.of, protected):
        if key != two:
            await confirm(runtime, CRD, key)
    # By label, so that a wrong answer does not delete definitions of other tests.
    mine = f"suite=deletion,{marks.DELETION_PROTECTED}=true"
    with pytest.raises(
        Forbidden, match=rf"CustomResourceDefinition ({two.name} )?has none"
    ) as seen:
        await runtime.ask("DELETE", CRD, Key("", ""), labelSelector=mine)
    assert re.search(symptom("A protected object is not deleted"), str(seen.value))
    for key in (one, two, free):
        assert deletion_timestamp_of(await runtime.client.get(CRD, key)) is None
    await confirm(runtime, CRD, two)
    await runtime.ask("DELETE", CRD, Key("", ""), labelSelector="suite=deletion")
    for key in (one, two, free):
        await until_gone(runtime.client, CRD, key)


# Controllers that delete objects


async def test_the_garbage_collector_waits_for_the_confirmation(runtime: WebhookSite) -> None:
    namespace = await runtime.add_namespace()
    owner = await runtime.client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "owner", "namespace": namespace},
        }
    )
    obj = valid(CONTROL_PLANE, namespace)
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid_of(owner)}
    ]
    key = Key.of(await runtime.client.create(obj))
    free = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**obj["metadata"], "name": "dependent"},
    }
    await runtime.client.create(free)
    await runtime.client.delete(CONFIG_MAP, Key.of(owner))
    await until_gone(runtime.client, CONFIG_MAP, Key(namespace, "dependent"))
    live = await runtime.client.get(CONTROL_PLANE, key)
    assert deletion_timestamp_of(live) is None
    await confirm(runtime, CONTROL_PLANE, key)
    await until_gone(runtime.client, CONTROL_PLANE, key)


def is_blocked(namespace: JsonObject) -> bool:
    conditions = namespace.get("status", {}).get("conditions", [])
    return any("annotation to delete" in condition.get("message", "") for condition in conditions)


async def test_a_namespace_terminates_once_everything_is_confirmed(runtime: WebhookSite) -> None:
    namespace = await runtime.add_namespace()
    key = Key.of(await runtime.client.create(valid(NETWORK, namespace)))
    await runtime.client.delete(NAMESPACE, Key("", namespace))
    blocked = await until(runtime.client, NAMESPACE, Key("", namespace), is_blocked)
    assert blocked["status"]["phase"] == "Terminating"
    assert deletion_timestamp_of(await runtime.client.get(NETWORK, key)) is None
    await confirm(runtime, NETWORK, key)
    await until_gone(runtime.client, NETWORK, key)


# Unprotected objects


async def test_bastions_and_pods_can_be_deleted_without_confirmation(runtime: WebhookSite) -> None:
    namespace = await runtime.add_namespace()
    bastion = GroupVersionKind(EXTENSIONS, "v1alpha1", "Bastion")
    await runtime.client.create(valid(bastion, namespace))
    assert await runtime.client.delete(bastion, Key(namespace, "x"))
    await runtime.client.create(pod(namespace, "web"))
    await runtime.client.delete(POD, Key(namespace, "web"))
    with pytest.raises(NotFound):
        await runtime.client.get(POD, Key(namespace, "web"))


async def test_an_allowed_deletion_causes_an_event_and_a_dry_run_does_not(
    runtime: WebhookSite,
) -> None:
    namespace = await runtime.add_namespace()
    key = Key.of(await runtime.client.create(valid(NETWORK, namespace)))
    await confirm(runtime, NETWORK, key)
    await runtime.ask("DELETE", NETWORK, key, dryRun="All")
    await runtime.client.delete(NETWORK, key)
    async with asyncio.timeout(PATIENCE):
        while not (found := await runtime.client.list(EVENT, namespace)):
            await runtime.client.get_raw("/version")
    (event,) = found
    assert event["reason"] == "ConfirmedDeletion"
    assert event["regarding"]["name"] == "x"


async def test_nothing_is_protected_in_a_target(target: WebhookSite) -> None:
    namespace = await target.add_namespace()
    await target.client.create(valid(NETWORK, namespace))
    assert await target.client.delete(NETWORK, Key(namespace, "x"))
