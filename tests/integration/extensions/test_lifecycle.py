"""The lifecycle of extension resources on a real API server: spec 40 §2 and §3, 'Must hold'."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    generation_of,
    map_at,
)
from pergola.extension_api.cluster import FORCE_DELETION
from pergola.extensions import Code, Context, ExtensionError, RequeueAfter
from pergola.extensions.lifecycle import Settings
from pergola.garden.components.definitions import SHOOT_EXTENSIONS
from pergola.garden.components.definitions import load as load_definitions
from pergola.kube.client import Client
from pergola.kube.errors import Unreachable
from pergola.runtime.clock import FakeClock
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import serve
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    WatchedClient,
    extension_site,
    operation,
    recording_actuator,
)
from pergola.testing.waiting import PATIENCE, noticed, running, settled
from tests.support.failing_conditions import failing_conditions

FINALIZER = "extensions.gardener.cloud/network"
FAILED = {"status": {"lastOperation": {"type": "Reconcile", "state": "Failed"}}}
FORCED = {"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUCCEEDED: JsonObject = {
    "lastOperation": {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "done",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
}


def condition(kind: str, status: str) -> JsonObject:
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
    return {"type": kind, "status": status, "reason": "Test", "message": "", **times}


def last(obj: JsonObject) -> JsonObject:
    return map_at(obj, "status", "lastOperation")


async def created(site: ExtensionSite, actuator: RecordingActuator) -> None:
    """Create the resource and wait until it is reconciled."""
    await site.create("reconcile")
    await site.until_operation("Create")
    actuator.taken()


# §2


async def test_only_the_annotation_starts_a_reconciliation_and_is_removed_first(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await created(site, actuator)
        await settled(unit, site.client)
        recorder.states.clear()
        recorder.taken()

        await site.edit({"spec": {"providerConfig": {"backend": "none"}}})
        await settled(unit, site.client)
        assert actuator.taken() == []

        await site.annotate("reconcile")
        done = await site.until_operation("Reconcile")
        await settled(unit, site.client)
    assert actuator.taken() == ["reconcile"]
    assert recorder.states == [("Succeeded", ""), ("Processing", ""), ("Succeeded", "")]
    assert map_at(done, "status")["observedGeneration"] == generation_of(done) == 2
    assert last(done)["description"] == "Successfully reconciled Network"
    assert last(done)["progress"] == 100


async def test_a_failing_condition_of_its_resource_has_a_series(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    metrics = Metrics()
    failing = [condition("SystemComponentsHealthy", "False"), condition("Fine", "True")]
    other = site.another("of-another-type")
    async with running(site.unit(actuator, metrics=metrics)):
        await site.create()
        await site.edit_status({"conditions": failing})
        await other.create(spec={"type": "another"})
        await other.edit_status({"conditions": failing})
        await noticed()
        assert failing_conditions(metrics) == {
            ("Network", site.key.name, "SystemComponentsHealthy")
        }
        await site.edit_status({"conditions": [condition("SystemComponentsHealthy", "True")]})
        await noticed()
        assert failing_conditions(metrics) == set()


async def test_every_run_takes_three_writes(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    status, metadata = f"patch/status Network {site.key}", f"patch Network {site.key}"
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await created(site, actuator)
        await settled(unit, site.client)
        # Remove the annotation and add the finalizer in one write.
        assert recorder.taken() == [metadata, status, status]
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")
        await settled(unit, site.client)
        assert recorder.taken() == [metadata, status, status]


async def test_a_request_whose_start_could_not_be_written_is_not_forgotten(
    site: ExtensionSite,
    actuator: RecordingActuator,
    recorder: WatchedClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request is removed first, and a caller that writes no timestamp leaves no other trace."""
    patch, refused = recorder.patch, asyncio.Event()

    async def refuse_once(*arguments: Any, subresource: str = "") -> JsonObject:
        if subresource == "status" and not refused.is_set():
            refused.set()
            raise Unreachable("the connection was closed")
        return await patch(*arguments, subresource=subresource)

    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await created(site, actuator)
        await settled(unit, site.client)
        monkeypatch.setattr(recorder, "patch", refuse_once)
        request = {marks.OPERATION: "reconcile", marks.TIMESTAMP: None}
        await site.edit({"metadata": {"annotations": request}})
        await site.until_operation("Reconcile")
    assert refused.is_set()
    assert actuator.taken() == ["reconcile"]


async def test_the_finalizer_is_added_before_the_actuator_is_called(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        await site.until_operation("Create")
    assert finalizers_of(actuator.seen[0]) == [FINALIZER]
    assert marks.OPERATION not in annotations_of(actuator.seen[0])


async def test_an_error_has_codes_and_success_removes_it(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    broken = asyncio.Event()
    broken.set()

    async def act(context: Context, obj: JsonObject) -> None:
        if broken.is_set():
            raise ExtensionError("the quota is used up", Code.QUOTA_EXCEEDED)

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator, clock=FakeClock(NOW))):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")
        text = "Error reconciling Network: the quota is used up"
        assert map_at(failed, "status") == {
            "lastOperation": {
                "type": "Create",
                "state": "Error",
                "progress": 50,
                "description": text,
                "lastUpdateTime": "2026-01-02T03:04:05Z",
            },
            "lastError": {
                "description": text,
                "codes": ["ERR_INFRA_QUOTA_EXCEEDED"],
                "lastUpdateTime": "2026-01-02T03:04:05Z",
            },
            "observedGeneration": 1,
            "observedTimestamp": annotations_of(failed)[marks.TIMESTAMP],
        }
        broken.clear()
        done = await site.until_operation("Create")
    assert "lastError" not in map_at(done, "status")


async def test_a_later_error_does_not_keep_the_codes_of_an_earlier_one(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> None:
        if actuator.calls == ["reconcile"]:
            raise ExtensionError("the quota is used up", Code.QUOTA_EXCEEDED)
        raise ValueError("no idea")

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        failed = await site.until(
            lambda obj: last(obj).get("description", "").endswith("ValueError: no idea")
        )
    assert "codes" not in map_at(failed, "status", "lastError")


async def test_the_operation_type_is_create_until_the_first_success(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> None:
        if len(actuator.calls) < 3:
            raise ExtensionError("not yet")

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        await site.until_operation("Create")
        assert len(actuator.calls) == 3
        assert operation(actuator.seen[2]) == ("Create", "Error")
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")


async def test_only_unfinished_resources_are_processed_after_a_restart(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    others = [
        ExtensionSite(site.client, site.namespace, of_type=site.type),
        ExtensionSite(site.client, site.namespace, of_type=site.type),
    ]
    for name, other in zip(("unfinished", "going"), others, strict=True):
        other.key = Key(site.namespace, name)
        await other.create(finalizers=(FINALIZER,))
        await other.edit_status(SUCCEEDED)
    await site.create()
    await site.edit_status(SUCCEEDED)
    await others[0].edit_status({"lastOperation": {"state": "Processing"}})
    await others[1].delete()

    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await others[0].until_operation("Reconcile")
        await others[1].until_gone()
        await settled(unit, site.client)
    assert sorted(actuator.calls) == ["delete", "reconcile"]
    assert not [write for write in recorder.taken() if str(site.key) in write]


async def test_a_migration_leaves_no_finalizer_and_no_annotation(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    async def migrate(context: Context, obj: JsonObject) -> JsonObject:
        return {"state": {"mode": "cluster-pool"}}

    actuator.acts["migrate"] = migrate
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await created(site, actuator)
        await site.edit({"metadata": {"finalizers": [FINALIZER, "example.org/other"]}})
        recorder.taken()
        await site.annotate("migrate")
        left = await site.until(lambda obj: not finalizers_of(obj))
        assert operation(left) == ("Migrate", "Succeeded")
        assert last(left)["description"] == "Successfully migrated Network"
        assert map_at(left, "status", "state") == {"mode": "cluster-pool"}
        assert marks.OPERATION not in annotations_of(left)
        await settled(unit, site.client)
        assert len(recorder.taken()) == 3
        assert actuator.taken() == ["migrate"]

        await site.delete()
        await site.until_gone()
        await settled(unit, site.client)
    assert actuator.taken() == []
    assert recorder.taken() == []


async def test_a_migration_adds_no_finalizer(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    await site.create("migrate")
    async with running(site.unit(actuator)):
        await site.until(lambda obj: marks.OPERATION not in annotations_of(obj))
    assert finalizers_of(actuator.seen[0]) == []


async def test_nothing_is_written_until_the_state_is_restored(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    async def restore(context: Context, obj: JsonObject) -> JsonObject:
        return {"providerStatus": {"found": map_at(obj, "status", "state")}}

    actuator.acts["restore"] = restore
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await site.create("wait-for-state")
        await site.edit_status({"state": {"mode": "cluster-pool"}})
        await settled(unit, site.client)
        assert recorder.taken() == []

        await site.annotate("restore")
        restored = await site.until(lambda obj: marks.OPERATION not in annotations_of(obj))
        await settled(unit, site.client)
    # Once: the controller is not triggered by its own writes.
    assert actuator.calls == ["restore"]
    assert operation(restored) == ("Restore", "Succeeded")
    assert finalizers_of(restored) == [FINALIZER]
    assert map_at(restored, "status", "providerStatus") == {"found": {"mode": "cluster-pool"}}


@pytest.mark.parametrize("asked", ["reconcile", "migrate", "restore"])
async def test_nothing_happens_for_a_failed_shoot_and_the_request_is_kept(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient, asked: str
) -> None:
    await site.put_cluster(FAILED)
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await site.create(asked)
        await settled(unit, site.client)
        assert actuator.calls == []
        assert recorder.taken() == []

        await site.put_cluster()  # the Shoot is retried
        await site.until(lambda obj: operation(obj)[1] == "Succeeded")
    assert actuator.calls == [asked]


async def test_a_bastion_of_a_failed_shoot_is_created_changed_and_deleted(
    site: ExtensionSite,
) -> None:
    """That is when people need one, and it must not stay open after its time."""
    await serve(site.client, *load_definitions(SHOOT_EXTENSIONS))
    site.gvk = BASTION
    bastions = recording_actuator(site.type, BASTION.kind)
    await site.put_cluster(FAILED)
    ingress = [{"ipBlock": {"cidr": "192.0.2.1/32"}}]
    async with running(site.unit(bastions)):
        await site.create("reconcile", spec={"userData": "eA==", "ingress": ingress})
        await site.until_operation("Create")
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")
        await site.delete()
        await site.until_gone()
    assert bastions.calls == ["reconcile", "reconcile", "delete"]


async def test_without_a_cluster_a_resource_waits_for_one(
    cluster_client: Client, namespace: str, recorder: WatchedClient
) -> None:
    site = await extension_site(cluster_client, namespace)
    actuator = recording_actuator(site.type)
    await site.clean_up()
    async with running(site.unit(actuator, client=recorder)):
        await site.create("reconcile")
        # It has failed at least once.
        async with asyncio.timeout(PATIENCE):
            while not recorder.reads(namespace):
                await site.client.get_raw("/version")
        assert recorder.taken() == []
        await site.put_cluster()
        await site.until_operation("Create")
    await site.clean_up()


async def test_a_resource_without_our_finalizer_is_deleted_without_the_extension(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    await site.create(finalizers=("example.org/other",))
    await site.edit_status(SUCCEEDED)
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await site.delete()
        await settled(unit, site.client)
    assert actuator.calls == []
    assert recorder.taken() == []


async def test_a_confirmed_force_deletion_does_not_wait(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    await site.put_cluster(FORCED)
    async with running(site.unit(actuator)):
        await created(site, actuator)
        await site.delete()
        await site.until_gone()
    assert actuator.taken() == ["force_delete"]


@pytest.mark.parametrize("annotation", ["", "false", "true"])
async def test_a_bastion_is_forced_by_its_own_annotation_and_not_by_its_shoot(
    site: ExtensionSite, annotation: str
) -> None:
    await serve(site.client, *load_definitions(SHOOT_EXTENSIONS))
    site.gvk = BASTION
    bastions = recording_actuator(site.type, BASTION.kind)
    await site.put_cluster(FORCED if annotation != "true" else {})
    ingress = [{"ipBlock": {"cidr": "192.0.2.1/32"}}]
    async with running(site.unit(bastions)):
        await site.create("reconcile", spec={"userData": "eA==", "ingress": ingress})
        await site.until_operation("Create")
        bastions.taken()
        await site.edit({"metadata": {"annotations": {FORCE_DELETION: annotation}}})
        await site.delete()
        await site.until_gone()
    assert bastions.taken() == ["force_delete" if annotation == "true" else "delete"]


async def test_requeue_after_runs_again_at_that_time_and_no_earlier(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def act(context: Context, obj: JsonObject) -> None:
        times.append(loop.time())
        if len(times) < 3:
            raise RequeueAfter(0.3, ExtensionError("waits for nodes", Code.DEPENDENCIES))

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        await site.until_operation("Create")
    error = map_at(actuator.seen[1], "status", "lastError")  # as the next run found it
    assert error["description"] == "Error reconciling Network: waits for nodes"
    assert error["codes"] == ["ERR_INFRA_DEPENDENCIES"]
    assert times[1] - times[0] >= 0.3
    assert times[2] - times[1] >= 0.3


async def test_a_deletion_is_complete_when_the_actuator_is_done(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    gone = asyncio.Event()

    async def delete(context: Context, obj: JsonObject) -> None:
        await gone.wait()

    actuator.acts["delete"] = delete
    async with running(site.unit(actuator)):
        await created(site, actuator)
        await site.delete()
        going = await site.until_operation("Delete", "Processing")
        assert finalizers_of(going) == [FINALIZER]
        assert last(going)["description"] == "Deleting the Network"
        gone.set()
        await site.until_gone()
    assert actuator.taken() == ["delete"]


async def test_foreign_finalizers_outlast_a_deletion(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        await created(site, actuator)
        await site.edit({"metadata": {"finalizers": [FINALIZER, "example.org/other"]}})
        await site.delete()
        left = await site.until(lambda obj: finalizers_of(obj) == ["example.org/other"])
    assert operation(left) == ("Delete", "Succeeded")


async def test_without_annotations_changes_of_the_generation_and_the_cluster_trigger_runs(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    unit = site.unit(actuator, Settings(ignore_operation_annotation=True))
    async with running(unit):
        await site.create()
        await site.until_operation("Create")
        await settled(unit, site.client)
        assert actuator.taken() == ["reconcile"]

        await site.edit({"spec": {"providerConfig": {"backend": "none"}}})
        await site.until_operation("Reconcile")
        await settled(unit, site.client)
        assert actuator.taken() == ["reconcile"]

        await site.edit({"metadata": {"labels": {"a": "b"}}})
        await settled(unit, site.client)
        assert actuator.taken() == []

        changed = asyncio.Event()

        async def act(context: Context, obj: JsonObject) -> None:
            changed.set()

        actuator.acts["reconcile"] = act
        await site.put_cluster({"spec": {"hibernation": {"enabled": True}}})
        async with asyncio.timeout(PATIENCE):
            await changed.wait()
    cluster = actuator.contexts[-1].cluster
    assert cluster is not None
    assert cluster.shoot is not None
    assert cluster.shoot.hibernation_enabled
