"""The caller of extensions, with a running extension, on a real API server (spec 40 §4)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pergola.api.kinds import LEASE, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    generation_of,
    map_at,
)
from pergola.extension_api.caller import (
    NETWORK,
    CallerError,
    Extension,
    ExtensionKind,
    NotDeleted,
    NotMigrated,
    NotReady,
    Progress,
    Waiting,
    abandon,
    deploy,
    destroy,
    explainer,
    leave,
    migrate,
    restore,
    wait_deleted,
    wait_migrated,
    wait_ready,
)
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.actuator import Context, Status
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, NotFound, UnknownKind
from pergola.kube.kubeconfig import load
from pergola.runtime.clock import FakeClock, SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    extension_site,
    hang,
    operation,
    recording_actuator,
)
from pergola.testing.waiting import PATIENCE, running, until
from pergola.testing.world import RecordingClient
from tests.support.proxy import CuttableProxy
from tests.support.service_accounts import service_account_config

CLOCK = SystemClock()
HASTY = replace(NETWORK, interval=0.1, severe=0.6, timeout=PATIENCE)
SHORT = Waiting(timeout=4.0)  # and long enough to read on a busy machine
UNSERVED = ExtensionKind(kind="Unheardof", plural="unheardofs")
OPERATION, TIMESTAMP = "gardener.cloud/operation", "gardener.cloud/timestamp"


@pytest.fixture
async def site(cluster_client: Client, namespace: str) -> AsyncIterator[ExtensionSite]:
    site = await extension_site(cluster_client, namespace)
    yield site
    await site.clean_up()


@pytest.fixture
def actuator(site: ExtensionSite) -> RecordingActuator:
    return recording_actuator(site.type)


def desired(site: ExtensionSite, **spec: object) -> JsonObject:
    """Return the Network of a site, as a caller creates it."""
    ranges = {"podCIDR": "100.64.0.0/11", "serviceCIDR": "100.96.0.0/13"}
    return {
        "metadata": {"name": site.key.name, "namespace": site.namespace},
        "spec": {"type": site.type, **ranges, **spec},
    }


async def make_ready(site: ExtensionSite, **spec: object) -> JsonObject:
    """Deploy a Network and wait for it, with the usual patience for transient errors."""
    request = await deploy(site.client, NETWORK, desired(site, **spec), CLOCK)
    return await wait_ready(site.client, NETWORK, site.key, expected=request.timestamp)


def shoot_state(site: ExtensionSite, state: JsonObject | None = None) -> JsonObject:
    entry = {"kind": "Network", "name": site.key.name, "state": state}
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ShootState",
        "metadata": {"name": site.key.name},
        "spec": {"extensions": [entry] if state is not None else []},
    }


async def failing(_context: Context, _obj: JsonObject) -> Status | None:
    raise ExtensionError("the pool is too small", Code.CONFIGURATION_PROBLEM)


# Must hold


async def test_deploying_the_same_network_again_changes_only_annotations(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        first = await make_ready(site, providerConfig={"a": {"b": 1}})
        second = await make_ready(site, providerConfig={"a": {"b": 1}})
    assert actuator.calls == ["reconcile", "reconcile"]
    assert generation_of(second) == generation_of(first) == 1
    assert second["spec"] == first["spec"]
    assert annotations_of(second)[TIMESTAMP] > annotations_of(first)[TIMESTAMP]
    assert operation(second) == ("Reconcile", "Succeeded")


async def test_a_persistent_error_fails_the_wait_and_a_later_one_succeeds(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    actuator.acts["reconcile"] = failing
    request = await deploy(site.client, NETWORK, desired(site), CLOCK)
    async with running(site.unit(actuator)):
        with pytest.raises(NotReady) as caught:
            await wait_ready(site.client, HASTY, site.key, expected=request.timestamp)
        actuator.acts.clear()
        ready = await make_ready(site)
    assert str(caught.value).startswith(f"Error while waiting for Network {site.key} to become")
    assert "the pool is too small" in str(caught.value)
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)
    assert "lastError" not in ready["status"]


async def test_a_second_restore_does_not_overwrite_the_state(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    seen: list[object] = []

    async def remember(_context: Context, obj: JsonObject) -> Status | None:
        seen.append(map_at(obj, "status").get("state"))
        return {"state": {"now": "newer"}}

    actuator.acts["restore"] = remember
    async with running(site.unit(actuator)):
        for known in ({"then": "older"}, {"then": "older still"}):
            state = shoot_state(site, known)
            request = await restore(site.client, NETWORK, desired(site), state, CLOCK)
            await wait_ready(site.client, HASTY, site.key, expected=request.timestamp)
    assert actuator.calls.count("restore") == 2
    assert seen == [{"then": "older"}, {"now": "newer"}]


@pytest.mark.parametrize("known", [True, False])
async def test_without_an_entry_a_restore_starts_with_an_empty_state(
    site: ExtensionSite, actuator: RecordingActuator, known: bool
) -> None:
    state = shoot_state(site) if known else None
    async with running(site.unit(actuator)):
        request = await restore(site.client, NETWORK, desired(site), state, CLOCK)
        ready = await wait_ready(site.client, HASTY, site.key, expected=request.timestamp)
    assert actuator.calls == ["restore"]
    assert operation(ready) == ("Restore", "Succeeded")
    assert "state" not in ready["status"]


# Requesting


async def test_a_new_network_is_created_with_the_request(site: ExtensionSite) -> None:
    now = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
    request = await deploy(site.client, NETWORK, desired(site), FakeClock(now))
    live = await site.read()
    assert request.timestamp == "2026-03-01T10:00:00.000000000Z"
    assert annotations_of(live) == {OPERATION: "reconcile", TIMESTAMP: request.timestamp}
    assert live["spec"] == desired(site)["spec"]


async def test_the_spec_is_replaced_as_a_whole(
    site: ExtensionSite,
) -> None:
    config = {"backend": "bird", "ipam": {"type": "host-local"}}
    await deploy(site.client, NETWORK, desired(site, providerConfig=config), CLOCK)
    changed = desired(site, providerConfig={"ipam": {"cidr": "x"}}, ipFamilies=["IPv4"])
    await deploy(site.client, NETWORK, changed, CLOCK)
    spec = (await site.read())["spec"]
    assert spec["providerConfig"] == {"ipam": {"cidr": "x"}}
    assert "ipFamilies" not in spec


async def test_a_network_under_deletion_gets_no_request(site: ExtensionSite) -> None:
    await site.create(finalizers=("example.org/keep",))
    await site.delete()
    with pytest.raises(CallerError, match="is being deleted: wait until it is gone"):
        await deploy(site.client, NETWORK, desired(site), CLOCK)


# Waiting


async def test_progress_is_reported_to_the_waiting_caller(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    reported: list[Progress] = []
    actuator.acts["reconcile"] = hang
    await deploy(site.client, NETWORK, desired(site), CLOCK)
    async with running(site.unit(actuator)):
        await site.until_operation("Create", "Processing")
        with pytest.raises(NotReady, match=r"observed generation outdated \(0/1\)"):
            await wait_ready(site.client, HASTY, site.key, replace(SHORT, report=reported.append))
    assert reported == [Progress(1, "Reconciling the Network")]


async def test_an_unknown_type_times_out_and_names_the_missing_extension(
    site: ExtensionSite,
) -> None:
    explain = explainer(site.client, CLOCK, Extension(namespace=site.namespace))
    await deploy(site.client, NETWORK, desired(site), CLOCK)
    with pytest.raises(NotReady) as caught:
        await wait_ready(site.client, HASTY, site.key, replace(SHORT, explain=explain))
    assert "observed generation outdated (0/1); an extension for" in str(caught.value)
    assert f"an extension for type {site.type} has no heartbeat" in str(caught.value)
    assert "status" not in await site.read()


async def test_a_dead_extension_is_named_with_its_last_heartbeat(site: ExtensionSite) -> None:
    holder, renewed = f"networking-{site.type}", "2026-03-01T08:00:00.000000Z"
    await site.client.create(
        {
            "apiVersion": LEASE.api_version,
            "kind": "Lease",
            "metadata": {"name": "gardener-extension-heartbeat", "namespace": site.namespace},
            "spec": {"holderIdentity": holder, "renewTime": renewed},
        }
    )
    # As a person does it who does not know where the extension runs.
    hint = await hint_of(site)
    assert hint == f"extension {holder} is not running since 2026-03-01T08:00:00Z"


async def test_a_missing_cluster_is_named(site: ExtensionSite) -> None:
    await site.clean_up()
    assert (await hint_of(site)).startswith(f"Cluster {site.namespace} does not exist")


async def hint_of(site: ExtensionSite) -> str:
    """Return the first reported reason for the lack of progress."""
    reported: asyncio.Queue[Progress] = asyncio.Queue()
    waiting = Waiting(report=reported.put_nowait, explain=explainer(site.client, CLOCK))
    await deploy(site.client, NETWORK, desired(site), CLOCK)
    wait = asyncio.create_task(wait_ready(site.client, HASTY, site.key, waiting))
    async with asyncio.timeout(PATIENCE):
        while not (progress := await reported.get()).hint:
            pass
    wait.cancel()
    await asyncio.wait([wait])
    return progress.hint


async def test_a_caller_that_may_only_get_networks_can_wait(
    site: ExtensionSite, actuator: RecordingActuator, kubeconfig: Path
) -> None:
    request = await deploy(site.client, NETWORK, desired(site), CLOCK)
    await allow_to_get_networks(site)
    identity = await service_account_config(load(kubeconfig), site.namespace)
    async with Client.connect(identity) as restricted, running(site.unit(actuator)):
        await until_it_may_get(restricted, site.key)
        await wait_ready(restricted, HASTY, site.key, expected=request.timestamp)
        await destroy(site.client, NETWORK, site.key, CLOCK)
        await wait_deleted(restricted, HASTY, site.key)


async def test_an_outage_of_the_api_server_does_not_end_a_wait(
    site: ExtensionSite, actuator: RecordingActuator, kubeconfig: Path
) -> None:
    seen = asyncio.Event()
    waiting = Waiting(report=lambda _: seen.set())
    async with (
        CuttableProxy(load(kubeconfig)) as proxy,
        Client.connect(proxy.config) as far_client,
        asyncio.TaskGroup() as group,
    ):
        request = await deploy(site.client, NETWORK, desired(site), CLOCK)
        wait = wait_ready(far_client, NETWORK, site.key, waiting, expected=request.timestamp)
        waiter = group.create_task(wait)
        await seen.wait()
        proxy.refuse()
        proxy.cut()
        async with running(site.unit(actuator)):
            await site.until_operation("Create", "Succeeded")
        proxy.accept()
        async with asyncio.timeout(PATIENCE):
            assert operation(await waiter) == ("Create", "Succeeded")


async def test_an_unserved_kind_is_reported_at_once(site: ExtensionSite) -> None:
    with pytest.raises(UnknownKind):
        await wait_ready(site.client, UNSERVED, site.key)
    await wait_deleted(site.client, UNSERVED, site.key)
    assert not await destroy(site.client, UNSERVED, site.key, CLOCK)


# Deleting


async def test_a_network_is_destroyed_with_a_confirmation(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        await make_ready(site)
        assert await destroy(site.client, NETWORK, site.key, CLOCK)
        await wait_deleted(site.client, HASTY, site.key)
    assert actuator.calls == ["reconcile", "delete"]
    assert not await destroy(site.client, NETWORK, site.key, CLOCK)


async def test_a_failed_deletion_is_explained(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    actuator.acts["delete"] = failing
    async with running(site.unit(actuator)):
        await make_ready(site)
        await destroy(site.client, NETWORK, site.key, CLOCK)
        await site.until_operation("Delete", "Error")
        with pytest.raises(NotDeleted) as caught:
            await wait_deleted(site.client, HASTY, site.key, SHORT)
    assert str(caught.value).startswith(f"Failed to delete Network {site.key}: ")
    assert "the pool is too small" in str(caught.value)
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


async def test_the_migration_of_a_missing_network_writes_nothing(
    site: ExtensionSite, kubeconfig: Path
) -> None:
    async with RecordingClient.connect(load(kubeconfig)) as recorder:
        assert await migrate(recorder, NETWORK, site.key, CLOCK) is None
        assert await wait_migrated(recorder, NETWORK, site.key) is None
        await abandon(recorder, NETWORK, site.key, CLOCK)
        assert recorder.taken() == [f"patch Network {site.key}"]


async def test_a_network_that_was_not_migrated_is_not_abandoned(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        await make_ready(site)
    with pytest.raises(NotMigrated, match="is not deleted: it was not migrated away"):
        await abandon(site.client, NETWORK, site.key, CLOCK)
    assert "deletionTimestamp" not in (await site.read())["metadata"]


# Moving


async def test_a_network_moves_to_another_seed_without_losing_anything(
    site: ExtensionSite, actuator: RecordingActuator, second_sandbox: Sandbox
) -> None:
    state, keys = {"ipam": "cluster-pool"}, {"key": "czNjcjN0"}
    named = [{"name": "wireguard", "resourceRef": reference("keys")}]
    await site.client.create(secret("keys", site.namespace, keys))

    async def report(_context: Context, _obj: JsonObject) -> Status | None:
        return {"state": state, "resources": named}

    actuator.acts["migrate"] = report
    async with running(site.unit(actuator)):
        await make_ready(site)
        moved = await leave(site.client, HASTY, site.key, CLOCK)
        assert moved is not None
        await until(site.client, NETWORK.gvk, site.key, lambda obj: finalizers_of(obj) == [])
        await abandon(site.client, HASTY, site.key, CLOCK)
    assert actuator.taken() == ["reconcile", "migrate"]

    async with Client.connect(load(second_sandbox.kubeconfig)) as other:
        await other.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.namespace}}
        )
        new = await extension_site(other, site.namespace, site.type)
        try:
            async with running(new.unit(actuator)):
                request = await restore(other, NETWORK, desired(site), moved, CLOCK)
                ready = await wait_ready(other, HASTY, new.key, expected=request.timestamp)
            assert actuator.taken() == ["restore"]
            assert (ready["status"]["state"], ready["status"]["resources"]) == (state, named)
            copy = await other.get(SECRET, Key(site.namespace, "keys"))
            assert copy["data"] == keys
        finally:
            await new.clean_up()


async def test_a_state_that_lacks_an_object_is_refused_before_anything_is_written(
    site: ExtensionSite,
) -> None:
    state = shoot_state(site, {"a": 1})
    named = {"name": "wireguard", "resourceRef": reference("keys")}
    state["spec"]["extensions"][0]["resources"] = [named]
    with pytest.raises(CallerError, match="refers to Secret keys, for which"):
        await restore(site.client, NETWORK, desired(site), state, CLOCK)
    with pytest.raises(NotFound):
        await site.read()


async def test_an_interrupted_restore_creates_the_objects_before_the_state(
    site: ExtensionSite, kubeconfig: Path
) -> None:
    state = shoot_state(site, {"a": 1})
    state["spec"]["extensions"][0]["resources"] = [
        {"name": "wireguard", "resourceRef": reference("keys")}
    ]
    data = secret("keys", "elsewhere", {"key": "YQ=="})
    state["spec"]["resources"] = [{**reference("keys"), "data": data}]
    async with RecordingClient.connect(load(kubeconfig)) as recorder:
        await restore(recorder, NETWORK, desired(site), state, CLOCK)
        assert recorder.taken() == orderly(site)
        await site.edit_status({"state": None})
        await restore(recorder, NETWORK, desired(site), state, CLOCK)
        assert recorder.taken() == [
            f"patch Network {site.key}",
            f"create Secret {site.namespace}/keys",
            f"patch Secret {site.namespace}/keys",
            f"patch/status Network {site.key}",
            f"patch Network {site.key}",
        ]


def orderly(site: ExtensionSite) -> list[str]:
    return [
        f"create Network {site.key}",
        f"create Secret {site.namespace}/keys",
        f"patch/status Network {site.key}",
        f"patch Network {site.key}",
    ]


def reference(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Secret", "name": name}


def secret(name: str, namespace: str, data: dict[str, str]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def allow_to_get_networks(site: ExtensionSite) -> None:
    """Allow the namespace's own ServiceAccount to get Networks, and nothing else."""
    group, metadata = "rbac.authorization.k8s.io", {"name": "caller", "namespace": site.namespace}
    rule = {
        "apiGroups": ["extensions.gardener.cloud"],
        "resources": ["networks"],
        "verbs": ["get"],
    }
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata}
    await site.client.create({**role, "rules": [rule]})
    await site.client.create(
        {
            **role,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "caller"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "default", "namespace": site.namespace}
            ],
        }
    )


async def until_it_may_get(client: Client, key: Key) -> None:
    """Wait until the Role is effective: the authorizer learns of it by watching."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.get(NETWORK.gvk, key)
            except Forbidden:
                await asyncio.sleep(0.1)
            else:
                return
