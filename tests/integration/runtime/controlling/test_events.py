"""Events in an API server: equal Events are stored as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP, EVENT, NODE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.events import NOTE_BYTES, Recorder, Regarding
from pergola.testing.waiting import PATIENCE, until
from pergola.testing.world import RecordingClient, config_map
from tests.support.service_accounts import granting, service_account_config, until_granted

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def recording(
    cluster: Path | ClusterConfig, clock: FakeClock, *, creates_only: bool = False
) -> AsyncGenerator[tuple[Recorder, RecordingClient]]:
    config = load(cluster) if isinstance(cluster, Path) else cluster
    async with RecordingClient.connect(config) as client:
        recorder = Recorder(client, "test-controller", clock=clock, creates_only=creates_only)
        running = asyncio.create_task(recorder.run())
        try:
            yield recorder, client
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def events(client: Client, namespace: str, count: int = 1) -> list[JsonObject]:
    """Wait until a namespace has this many Events of the controller."""
    async with asyncio.timeout(PATIENCE):
        while len(found := await client.list(EVENT, namespace)) < count:
            pass
    return found


async def writes(client: RecordingClient, count: int) -> list[str]:
    """Wait until this many writes were started, and a later request was answered."""
    async with asyncio.timeout(PATIENCE):
        while len(getattr(client, "writes", [])) < count:
            await client.get_raw("/version")
    return client.taken()


@pytest.fixture
async def regarding(cluster_client: Client, namespace: str) -> Regarding:
    return Regarding.of(await cluster_client.create(config_map("demo", namespace)))


async def test_an_event_contains_object_reason_and_controller(
    kubeconfig: Path, namespace: str, regarding: Regarding
) -> None:
    async with recording(kubeconfig, FakeClock(NOW)) as (recorder, client):
        recorder.warning(regarding, "Broken", "it does not work")
        (event,) = await events(client, namespace)
    assert event["type"] == "Warning"
    assert (event["reason"], event["note"]) == ("Broken", "it does not work")
    assert (event["reportingController"], event["action"]) == ("test-controller", "Reconcile")
    assert event["regarding"]["name"] == "demo"
    assert event["regarding"]["uid"] == regarding.uid


async def test_a_repeated_event_is_written_once_and_counted_after_six_minutes(
    kubeconfig: Path, namespace: str, regarding: Regarding
) -> None:
    clock = FakeClock(NOW)
    async with recording(kubeconfig, clock) as (recorder, client):
        for _ in range(5):
            recorder.normal(regarding, "Ready", "all is well")
        recorder.normal(regarding, "Last", "everything before this was sent")
        both = await events(client, namespace, 2)
        (event,) = (event for event in both if event["reason"] == "Ready")
        assert len(client.taken()) == 2
        clock.set(NOW + timedelta(minutes=7))
        recorder.normal(regarding, "Ready", "all is well")
        await until(
            client, EVENT, Key.of(event), lambda obj: obj.get("series", {}).get("count") == 6
        )
        assert len(client.taken()) == 1


async def test_a_repeated_event_is_recreated_after_an_hour_or_its_deletion(
    kubeconfig: Path, namespace: str, regarding: Regarding
) -> None:
    clock = FakeClock(NOW)
    async with recording(kubeconfig, clock) as (recorder, client):
        recorder.normal(regarding, "Ready", "all is well")
        await events(client, namespace)
        clock.set(NOW + timedelta(hours=2))
        recorder.normal(regarding, "Ready", "all is well")
        for event in await events(client, namespace, 2):
            await client.delete(EVENT, Key.of(event))
        client.taken()
        clock.set(NOW + timedelta(hours=2, minutes=7))
        recorder.normal(regarding, "Ready", "all is well")
        await events(client, namespace)
        assert [write.split()[0] for write in client.taken()] == ["patch", "create"]


async def test_a_long_note_is_truncated_and_a_refused_event_does_not_block_others(
    kubeconfig: Path, namespace: str, regarding: Regarding
) -> None:
    nowhere = Regarding(CONFIG_MAP, Key("no-such-namespace-at-all", "demo"))
    async with recording(kubeconfig, FakeClock(NOW)) as (recorder, client):
        recorder.warning(nowhere, "Broken", "this is never stored")
        recorder.warning(regarding, "Broken", "x" * 5000)
        (event,) = await events(client, namespace)
    assert len(event["note"].encode()) == NOTE_BYTES


async def test_pending_events_are_written_when_the_controller_ends(
    kubeconfig: Path, namespace: str, regarding: Regarding
) -> None:
    async with Client.connect(load(kubeconfig)) as client:
        recorder = Recorder(client, "test-controller", closing_seconds=PATIENCE)
        running = asyncio.create_task(recorder.run())
        await asyncio.sleep(0)  # it is running, and has nothing to send
        for reason in ("First", "Second"):
            recorder.normal(regarding, reason, "the controller ends")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()
        found = {event["reason"] for event in await client.list(EVENT, namespace)}
    assert found == {"First", "Second"}


async def test_the_end_does_not_wait_for_an_unresponsive_api_server(
    regarding: Regarding,
) -> None:
    class Silent(Client):
        """A client of an API server that never answers."""

        async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
            del dry_run
            await asyncio.Event().wait()
            return obj

    silent = Silent(None)  # type: ignore[arg-type] # it sends nothing
    recorder = Recorder(silent, "test-controller", closing_seconds=0.01)
    running = asyncio.create_task(recorder.run())
    recorder.normal(regarding, "First", "the controller ends")
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()


async def test_events_about_cluster_scoped_objects_are_in_the_default_namespace(
    kubeconfig: Path, namespace: str
) -> None:
    node = Regarding(NODE, Key("", f"node-of-{namespace}"), uid="u")
    async with recording(kubeconfig, FakeClock(NOW)) as (recorder, client):
        recorder.normal(node, "Ready", "all is well")
        (write,) = await writes(client, 1)
    assert write.startswith(f"create Event default/node-of-{namespace}.")


async def test_a_controller_that_may_only_create_events_reports_each_once_an_hour(
    kubeconfig: Path, cluster_client: Client, namespace: str, regarding: Regarding
) -> None:
    """Gardener grants a resource manager only this in the cluster of its ManagedResources."""
    own = Key(namespace, "default")
    rule: JsonObject = {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
    for obj in granting("reporter", own, rule, namespace):
        await cluster_client.create(obj)
    await until_granted(cluster_client, own)
    account = await service_account_config(load(kubeconfig), namespace)
    clock = FakeClock(NOW)
    async with recording(account, clock, creates_only=True) as (recorder, client):
        for minutes in (0, 1, 7, 59, 62):
            clock.set(NOW + timedelta(minutes=minutes))
            recorder.warning(regarding, "Broken", "it does not work")
            recorder.warning(regarding, f"After{minutes}", "everything before this was sent")
            await until_reported(cluster_client, namespace, f"After{minutes}")
        assert {write.split()[0] for write in client.taken()} == {"create"}
    found = [each for each in await events(cluster_client, namespace) if each["reason"] == "Broken"]
    assert len(found) == 2
    for event in found:
        assert (event["type"], event["note"]) == ("Warning", "it does not work")
        assert (event["reportingController"], event["action"]) == ("test-controller", "Reconcile")
        assert event["deprecatedSource"] == {"component": "test-controller"}
        assert event["regarding"]["uid"] == regarding.uid


async def until_reported(client: Client, namespace: str, reason: str) -> None:
    """Wait until there is an Event with a reason."""
    async with asyncio.timeout(PATIENCE):
        while reason not in {each["reason"] for each in await client.list(EVENT, namespace)}:
            pass
