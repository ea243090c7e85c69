"""The heartbeat of an extension, on a real API server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.kinds import LEASE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.extension_api.heartbeat import NAME, is_alive
from pergola.extensions.heartbeat import Heartbeat
from pergola.kube.client import Client
from pergola.kube.errors import Unreachable
from pergola.kube.kubeconfig import load
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import running, until
from pergola.testing.world import RecordingClient

NOW = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


@pytest.fixture
async def recorder(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        yield client


class Unsteady(Client):
    """A client whose first writes get no answer."""

    failures = 3

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        if self.failures:
            self.failures -= 1
            raise Unreachable("no answer")
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)


async def test_the_lease_is_created_and_then_renewed(
    recorder: RecordingClient, namespace: str
) -> None:
    clock = FakeClock(NOW)
    heart = Heartbeat(recorder, "networking-calico", namespace, clock=clock)
    first = await heart.beat()
    assert first["spec"] == {
        "holderIdentity": "networking-calico",
        "leaseDurationSeconds": 30,
        "renewTime": "2026-05-04T03:02:01.123456Z",
    }
    clock.set(NOW + timedelta(seconds=30))
    second = await heart.beat()
    assert second["spec"]["renewTime"] == "2026-05-04T03:02:31.123456Z"
    lease = f"Lease {namespace}/{NAME}"
    assert recorder.taken() == [f"patch {lease}", f"create {lease}", f"patch {lease}"]


async def test_fields_of_other_writers_in_the_lease_are_kept(
    cluster_client: Client, namespace: str
) -> None:
    metadata = {"name": NAME, "namespace": namespace, "labels": {"watched": "yes"}}
    obj = {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": {}}
    await cluster_client.create(obj)
    written = await Heartbeat(cluster_client, "networking-calico", namespace).beat()
    assert written["metadata"]["labels"] == {"watched": "yes"}
    assert is_alive(written, datetime.now(UTC)) is None


async def test_the_lease_is_renewed_at_each_interval(
    cluster_client: Client, namespace: str
) -> None:
    heart = Heartbeat(cluster_client, "networking-calico", namespace, seconds=1)
    async with running(Unit(tasks=[heart.run])):
        first = await until(cluster_client, LEASE, Key(namespace, NAME), lambda _: True)
        renewed = first["spec"]["renewTime"]
        await until(
            cluster_client,
            LEASE,
            Key(namespace, NAME),
            lambda lease: bool(lease["spec"]["renewTime"] > renewed),
        )


async def test_a_failure_is_retried_before_the_interval_is_over(
    kubeconfig: Path, cluster_client: Client, namespace: str
) -> None:
    loop = asyncio.get_running_loop()
    async with Unsteady.connect(load(kubeconfig)) as unsteady:
        heart = Heartbeat(unsteady, "networking-calico", namespace, seconds=300)
        began = loop.time()
        async with running(Unit(tasks=[heart.run])):
            await until(cluster_client, LEASE, Key(namespace, NAME), lambda _: True)
    assert unsteady.failures == 0
    assert loop.time() - began < 300


async def test_a_stale_lease_shows_when_the_extension_stopped(
    cluster_client: Client, namespace: str
) -> None:
    heart = Heartbeat(cluster_client, "networking-calico", namespace, clock=FakeClock(NOW))
    await heart.beat()
    lease = await cluster_client.get(LEASE, Key(namespace, NAME))
    assert is_alive(lease, NOW + timedelta(minutes=5)) is None
    assert is_alive(lease, NOW + timedelta(minutes=6)) == (
        "extension networking-calico is not running since 2026-05-04T03:02:01Z"
    )
