"""Actuators and the effects of their results on a real API server: spec 40 §3 and §10."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
)
from pergola.api.schema.declare import Value
from pergola.cloud.errors import Throttled
from pergola.extensions import Code, Context, ExtensionError
from pergola.extensions.lifecycle import Settings
from pergola.extensions.provider_config import read_strict
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.process.leader_election import LeaderElection
from pergola.runtime.process.options import LeaseTimes
from pergola.runtime.retrying import retrying
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    WatchedClient,
    hang,
    operation,
    recording_actuator,
)
from pergola.testing.waiting import PATIENCE, noticed, running, settled


def last(obj: JsonObject) -> JsonObject:
    return map_at(obj, "status", "lastOperation")


async def created(site: ExtensionSite, actuator: RecordingActuator) -> None:
    """Create the resource and wait until it is reconciled."""
    await site.create("reconcile")
    await site.until_operation("Create")
    actuator.taken()


# §3


async def test_an_exception_of_any_type_is_reported_and_retried(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> None:
        match len(actuator.calls):
            case 1:
                raise KeyError("podCIDR")
            case 2:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_fail(ExtensionError("one", Code.CLEANUP)))
            case 3:
                _cancelled().result()

    actuator.acts["reconcile"] = act
    unit = site.unit(actuator)
    async with running(unit):
        await site.create("reconcile")
        await site.until_operation("Create")
    reported = [map_at(obj, "status", "lastError") for obj in actuator.seen]
    assert reported[1]["description"] == "Error reconciling Network: KeyError: 'podCIDR'"
    assert reported[2]["description"] == "Error reconciling Network: one"
    assert reported[2]["codes"] == ["ERR_CLEANUP_CLUSTER_RESOURCES"]
    assert "a task that was cancelled" in reported[3]["description"]


async def test_an_unknown_config_field_is_named(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    class NetworkConfig(Value):
        """The config of a test."""

        backend: str = ""
        """The backend for packets."""

    async def act(context: Context, obj: JsonObject) -> None:
        gvk = GroupVersionKind("test.networking.extensions.gardener.cloud", "v1", "NetworkConfig")
        read_strict(NetworkConfig, obj["spec"]["providerConfig"], gvk)

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile", spec={"providerConfig": {"backend": "a", "bakcend": "b"}})
        failed = await site.until_operation("Create", "Error")
    assert "spec.providerConfig.bakcend" in last(failed)["description"]


async def test_resources_of_other_types_and_classes_are_left_alone(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    other = ExtensionSite(site.client, site.namespace, of_type=f"{site.type}-x")
    other.key = Key(site.namespace, "other-type")
    garden = ExtensionSite(site.client, site.namespace, of_type=site.type)
    garden.key = Key(site.namespace, "other-class")
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await other.create("reconcile")
        await garden.create("reconcile", spec={"class": "garden"})
        await settled(unit, site.client)
    assert actuator.calls == []
    assert recorder.taken() == []


async def test_resources_of_other_classes_need_no_cluster(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    await site.clean_up()
    async with running(site.unit(actuator, Settings(classes=("garden",)))):
        await site.create("reconcile", spec={"class": "garden"})
        await site.until_operation("Create")
    assert actuator.contexts[0].cluster is None


async def test_a_hanging_actuator_is_interrupted_and_reported(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    actuator.acts["reconcile"] = hang
    async with running(site.unit(actuator, Settings(timeout=0.3))):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")
        assert last(failed)["description"] == (
            "Error reconciling Network: it did not end within 0.3 s and was interrupted"
        )
        actuator.acts.clear()
        await site.until_operation("Create")


async def test_an_interrupted_run_reports_the_retried_error_with_its_code(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def retry_for_ever(*_: object) -> None:
        with retrying() as failed:
            failed(Throttled("AWS is throttling requests"))
            await asyncio.Event().wait()

    actuator.acts["reconcile"] = retry_for_ever
    async with running(site.unit(actuator, Settings(timeout=0.3))):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")

    error = map_at(failed, "status", "lastError")
    assert error["description"] == (
        "Error reconciling Network: it did not end within 0.3 s and was interrupted; it was "
        "retrying: AWS is throttling requests"
    )
    assert error["codes"] == ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]


async def test_a_killed_run_writes_nothing_more_and_the_next_one_takes_over(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    actuator.acts["reconcile"] = hang
    async with running(site.unit(actuator, client=recorder)):
        await site.create("reconcile")
        await actuator.called.wait()
        before = await site.read()
    assert operation(before) == ("Create", "Processing")
    assert await site.read() == before

    actuator.acts.clear()
    async with running(site.unit(actuator)):
        await site.until_operation("Create")
    assert actuator.calls == ["reconcile", "reconcile"]


async def test_a_kill_between_the_request_and_the_start_loses_nothing(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async with running(site.unit(actuator)):
        await created(site, actuator)
    taken_off = {marks.TIMESTAMP: "2026-01-02T03:04:05.000000001Z"}
    await site.edit({"metadata": {"annotations": taken_off}})
    async with running(site.unit(actuator)):
        done = await site.until_operation("Reconcile")
    assert map_at(done, "status")["observedTimestamp"] == taken_off[marks.TIMESTAMP]


@pytest.mark.parametrize("asked", ["migrate", "restore"])
async def test_a_killed_move_is_resumed_by_its_annotation(
    site: ExtensionSite, actuator: RecordingActuator, asked: str
) -> None:
    actuator.acts[asked] = hang
    async with running(site.unit(actuator)):
        await site.create(asked)
        await actuator.called.wait()
    assert annotations_of(await site.read())[marks.OPERATION] == asked
    actuator.acts.clear()
    async with running(site.unit(actuator)):
        await site.until_operation(asked.capitalize())
        await site.until(lambda obj: marks.OPERATION not in annotations_of(obj))
    assert actuator.calls == [asked, asked]


async def test_a_request_during_a_run_causes_exactly_one_more_run(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(context: Context, obj: JsonObject) -> None:
        begun.set()
        await go_on.wait()

    actuator.acts["reconcile"] = act
    unit = site.unit(actuator)
    async with running(unit):
        await site.create("reconcile")
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        await site.annotate("reconcile")
        await site.annotate("reconcile")
        await noticed()
        go_on.set()
        await site.until_operation("Reconcile")
        await settled(unit, site.client)
    assert actuator.calls == ["reconcile", "reconcile"]


async def test_only_the_leader_works(
    site: ExtensionSite, actuator: RecordingActuator, kubeconfig: Path
) -> None:
    second = recording_actuator(site.type)
    # No lease expires, even on a busy machine.
    times = LeaseTimes(lease_duration=2 * PATIENCE, renew_deadline=PATIENCE, retry_period=0.1)
    async with AsyncExitStack() as stack:
        elections = []
        for one, name in ((actuator, "a"), (second, "b")):
            client = await stack.enter_async_context(Client.connect(load(kubeconfig)))
            election = LeaderElection(client, site.namespace, "extension", name, times=times)
            elections.append(asyncio.create_task(election.run(site.unit(one).run)))
            if one is actuator:
                await site.create("reconcile")
                await site.until_operation("Create")
        assert second.calls == []
        elections[0].cancel()
        await asyncio.gather(elections[0], return_exceptions=True)
        actuator.taken()
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")
        elections[1].cancel()
        await asyncio.gather(elections[1], return_exceptions=True)
    assert actuator.calls == []
    assert second.calls == ["reconcile"]


# Progress of actuators


async def test_the_fields_returned_by_the_actuator_are_written_with_the_outcome(
    site: ExtensionSite, actuator: RecordingActuator, recorder: WatchedClient
) -> None:
    async def act(context: Context, obj: JsonObject) -> JsonObject:
        return {"ipFamilies": ["IPv4"], "providerStatus": {"kind": "NetworkStatus"}}

    actuator.acts["reconcile"] = act
    unit = site.unit(actuator, client=recorder)
    async with running(unit):
        await created(site, actuator)
        await settled(unit, site.client)
    assert recorder.bodies[-1]["status"]["ipFamilies"] == ["IPv4"]
    assert recorder.bodies[-1]["status"]["lastOperation"]["state"] == "Succeeded"
    assert len(recorder.bodies) == 3


async def test_state_is_saved_immediately_and_as_a_whole(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> JsonObject:
        await context.save({"state": {"created": ["a"], "pending": "b"}})
        saved = map_at(await context.client.get(NETWORK, site.key), "status", "state")
        assert saved == {"created": ["a"], "pending": "b"}
        await context.save({"state": {"created": ["a", "b"]}})
        raise ExtensionError("half way")

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")
    assert last(failed)["description"] == "Error reconciling Network: half way"
    assert map_at(failed, "status", "state") == {"created": ["a", "b"]}


async def test_an_actuator_must_not_write_the_outcome_itself(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> JsonObject:
        return {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")
    assert "the actuator sets status.lastOperation, which the SDK writes" in str(last(failed))


async def test_fields_that_the_api_server_rejects_are_an_error(
    site: ExtensionSite, actuator: RecordingActuator
) -> None:
    async def act(context: Context, obj: JsonObject) -> JsonObject:
        return {"ipFamilies": ["IPv5"]}

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        failed = await site.until_operation("Create", "Error")
    assert "status.ipFamilies" in last(failed)["description"]


async def test_progress_is_written_while_the_actuator_works(
    site: ExtensionSite, actuator: RecordingActuator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long the first write takes, another one would come too soon.
    monkeypatch.setattr("pergola.extensions.lifecycle.report.PROGRESS_SECONDS", 3600.0)
    contexts: list[Context] = []
    go_on = asyncio.Event()

    async def act(context: Context, obj: JsonObject) -> None:
        contexts.append(context)
        await context.progress(40, "Waiting for nodes")
        await context.progress(50, "so soon after another that it is skipped")
        await go_on.wait()

    actuator.acts["reconcile"] = act
    unit = site.unit(actuator)
    async with running(unit):
        await site.create("reconcile")
        reported = await site.until(lambda obj: last(obj).get("progress") == 40)
        assert last(reported)["description"] == "Waiting for nodes"
        assert operation(reported) == ("Create", "Processing")
        go_on.set()
        done = await site.until_operation("Create")
        await contexts[0].progress(60, "too late")
        await settled(unit, site.client)
    assert await site.read() == done


async def test_progress_never_decreases_and_stays_below_100(
    site: ExtensionSite, actuator: RecordingActuator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pergola.extensions.lifecycle.report.PROGRESS_SECONDS", 0.0)
    percents: list[int] = []

    async def act(context: Context, obj: JsonObject) -> None:
        for percent in (30, 20, 100):
            await context.progress(percent, f"reached {percent}")
            percents.append(last(await site.read())["progress"])

    actuator.acts["reconcile"] = act
    async with running(site.unit(actuator)):
        await site.create("reconcile")
        await site.until_operation("Create")
    assert percents == [30, 30, 99]


async def _fail(error: Exception) -> None:
    raise error


def _cancelled() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future
