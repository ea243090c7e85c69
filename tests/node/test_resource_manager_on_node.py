"""The resource manager as pods on a real node: webhooks, certificates, and outages."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from pergola.admission.configurations import MUTATING, configuration_keys
from pergola.api import marks
from pergola.api.kinds import CRD, DEPLOYMENT, LEASE, NAMESPACE, POD, SECRET, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, name_of
from pergola.kube.errors import ApiError
from pergola.kube.kubeconfig import load
from pergola.resource_manager.webhooks.projected_token_mount import MOUNT_PATH
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.world import RecordingClient, World
from pergola.why import Topic
from pergola.why import explain as why
from tests.support.deployed_manager import (
    MANAGER,
    READS_METRICS,
    kill_pods,
    mounts_token,
    outage,
    pod_with_account,
    recovered,
)
from tests.support.node_connections import CONNECTED, REFUSED, connect

pytestmark = pytest.mark.node

WEB: Final[JsonObject] = {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind}


async def in_a_namespace(manager: Sandbox, test: str) -> AsyncIterator[World]:
    async with RecordingClient.connect(load(manager.kubeconfig)) as client:
        name = await create_namespace(client, test)
        await client.patch(NAMESPACE, Key("", name), {"metadata": {"labels": {marks.ROLE: "test"}}})
        await client.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "quiet", "namespace": name},
                "automountServiceAccountToken": False,
            }
        )
        yield World(client, client, name)
        await clear_namespace(client, name)


@pytest.fixture
async def world(running_manager: Sandbox, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Yield a namespace that the webhooks select."""
    async for world in in_a_namespace(running_manager, request.node.name):
        yield world


@pytest.fixture
async def fragile(
    breakable_manager: Sandbox, request: pytest.FixtureRequest
) -> AsyncIterator[World]:
    """Yield a namespace that the webhooks select; the test may break the resource manager."""
    async for world in in_a_namespace(breakable_manager, request.node.name):
        yield world


async def test_pods_are_mutated_through_the_service(world: World) -> None:
    pod = await world.client.create(pod_with_account(world.namespace, "quiet"))

    assert mounts_token(pod)


async def test_a_change_by_a_webhook_in_a_managed_pod_is_explained_and_not_pending(
    world: World,
) -> None:
    alone = pod_with_account(world.namespace, "quiet")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": map_at(alone, "spec")}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.create("demo", alone, {**alone, **WEB, "spec": spec})
    await world.healthy("demo")

    (replica,) = await world.client.list(POD, world.namespace, labels="app=web")
    found = await why(world.client, POD, Key.of(replica))
    (change,) = (each for each in found.about(Topic.DECIDED) if "webhook" in each.subject)
    assert (found.state, change.subject) == ("ok", "webhook projected-token-mount")
    assert f'"mountPath":"{MOUNT_PATH}"' in change.below[0].text
    assert f"ServiceAccount {world.namespace}/quiet" in change.below[0].because

    found = await why(world.client, POD, Key.of(alone))
    assert (found.state, found.about(Topic.WAITS)) == ("ok", ())
    assert mounts_token(await world.client.get(POD, Key.of(alone)))


async def test_the_deletion_of_a_protected_definition_is_denied(world: World) -> None:
    gadget = GroupVersionKind(f"{world.namespace}.example.org", "v1", "Gadget")
    crd = definition(gadget)
    crd["metadata"]["labels"] = {marks.DELETION_PROTECTED: "true"}
    key = Key.of(await world.client.create(crd))

    with pytest.raises(ApiError) as denied:
        await world.client.delete(CRD, key)

    assert 'admission webhook "crd-deletion-protection.resources.gardener.cloud" denied' in str(
        denied.value
    )
    await world.client.patch(
        CRD, key, {"metadata": {"annotations": {marks.CONFIRMATION_DELETION: "true"}}}
    )
    await world.client.delete(CRD, key)


async def test_the_api_server_trusts_the_authority_that_the_resource_manager_created(
    world: World,
) -> None:
    secret = await world.client.get(SECRET, Key(MANAGER.namespace, f"{MANAGER.name}-server"))

    for gvk, key in configuration_keys(MANAGER.name):
        configuration = await world.client.get(gvk, key)
        for webhook in maps_at(configuration, "webhooks"):
            found = map_at(webhook, "clientConfig")
            assert found["caBundle"] == secret["data"]["ca.crt"]
            assert Key(found["service"]["namespace"], found["service"]["name"]) == MANAGER


async def test_webhooks_are_open_to_all_and_metrics_to_labelled_pods(world: World) -> None:
    service = await world.client.get(SERVICE, MANAGER)
    host = map_at(service, "spec")["clusterIP"]

    outcomes = await asyncio.gather(
        connect(world.client, world.namespace, host, 443),
        connect(world.client, world.namespace, host, 8080, READS_METRICS),
        connect(world.client, world.namespace, host, 8080),
        connect(world.client, world.namespace, host, 8081, READS_METRICS),
    )

    assert list(outcomes) == [CONNECTED, CONNECTED, REFUSED, REFUSED]


async def test_a_manually_deleted_registration_is_restored(fragile: World) -> None:
    key = Key("", MANAGER.name)
    removed = await fragile.client.get(MUTATING, key)

    await fragile.client.delete(MUTATING, key)

    again = await fragile.until_object(
        MUTATING, key, lambda obj: obj["metadata"]["uid"] != removed["metadata"]["uid"]
    )
    assert again["webhooks"] == removed["webhooks"]
    await recovered(fragile.client)


async def test_new_pods_take_over_when_all_pods_are_deleted(fragile: World) -> None:
    lease = await fragile.client.get(LEASE, MANAGER)
    await fragile.create("demo", fragile.config_map("greeting", text="hello"))
    await fragile.healthy("demo")

    await kill_pods(fragile.client)
    await fragile.put_secret("demo", fragile.config_map("greeting", text="changed"))
    await recovered(fragile.client)

    await fragile.until("demo", lambda obj: obj["status"]["secretsDataChecksum"] != "")
    holder = lease["spec"]["holderIdentity"]
    await fragile.until_object(
        LEASE, MANAGER, lambda obj: obj["spec"]["holderIdentity"] not in ("", holder)
    )
    await fragile.healthy("demo")
    assert mounts_token(await fragile.client.create(pod_with_account(fragile.namespace, "quiet")))


async def test_during_an_outage_only_reviewed_pods_are_refused(fragile: World) -> None:
    client = fragile.client
    elsewhere = await create_namespace(client, "elsewhere")
    async with outage(client):
        with pytest.raises(ApiError) as refused:
            await client.create(pod_with_account(fragile.namespace, "quiet"))
        unreviewed = await client.create(pod_with_account(elsewhere, "default"))

    assert "failed calling webhook" in str(refused.value)
    assert "connect: connection refused" in str(refused.value)
    assert name_of(unreviewed) == "reviewed"
    assert mounts_token(await client.create(pod_with_account(fragile.namespace, "quiet")))
    await clear_namespace(client, elsewhere)
