import asyncio
import re
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from pergola.api.kinds import CONFIG_MAP, LEASE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.kube.kubeconfig import load
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership
from pergola.runtime.process.lease_watch import follow
from pergola.runtime.process.options import LeaseTimes
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import config_map
from tests.support.proxy import CuttableProxy

NAME = "gardener-resource-manager"
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def candidate(
    client: Client, namespace: str, identity: str, lease_duration: float = 60.0
) -> LeaderElection:
    """Return a candidate without jitter that tries often; no lease expires on a busy machine."""
    return LeaderElection(
        client,
        namespace,
        NAME,
        identity,
        times=LeaseTimes(
            lease_duration=lease_duration, renew_deadline=0.75 * lease_duration, retry_period=0.2
        ),
        random=lambda: 0.0,
    )


async def spec(client: Client, namespace: str) -> JsonObject:
    lease = await client.get(LEASE, Key(namespace, NAME))
    fields: dict[str, Any] = lease["spec"]
    return fields


def follower(client: Client, namespace: str, identity: str) -> LeaderElection:
    """Return a candidate that retries every 15 minutes, but is triggered by its watch."""
    return LeaderElection(
        client,
        namespace,
        NAME,
        identity,
        times=LeaseTimes(lease_duration=3600, renew_deadline=1800, retry_period=900),
        follow=follow(client, Key(namespace, NAME)),
    )


async def test_one_of_two_replicas_leads_and_hands_over_when_it_stops(
    cluster_client: Client, namespace: str
) -> None:
    leading: asyncio.Queue[str] = asyncio.Queue()

    async def replica(identity: str) -> None:
        async def lead() -> None:
            leading.put_nowait(identity)
            await asyncio.Event().wait()

        await follower(cluster_client, namespace, identity).run(lead)

    replicas = {identity: asyncio.create_task(replica(identity)) for identity in ("a", "b")}
    async with asyncio.timeout(PATIENCE):
        first = await leading.get()
        held = await spec(cluster_client, namespace)
        replicas.pop(first).cancel()
        second = await leading.get()
    taken = await spec(cluster_client, namespace)

    assert {first, second} == {"a", "b"}
    assert (held["holderIdentity"], held["leaseTransitions"]) == (first, 0)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == (second, 1)
    assert taken["leaseDurationSeconds"] == 3600
    assert MICRO_TIME.fullmatch(taken["acquireTime"])
    assert MICRO_TIME.fullmatch(taken["renewTime"])

    [(_, last)] = replicas.items()
    last.cancel()
    with pytest.raises(asyncio.CancelledError):
        await last
    released = await spec(cluster_client, namespace)
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)


async def test_a_vanished_leader_is_replaced_when_its_lease_expires(
    cluster_client: Client, namespace: str
) -> None:
    await candidate(cluster_client, namespace, "gone", 2.0).acquire()
    loop = asyncio.get_running_loop()
    began = loop.time()

    other = candidate(cluster_client, namespace, "other", 2.0)
    async with asyncio.timeout(PATIENCE):
        await other.acquire()

    assert loop.time() - began >= 2.0
    assert (await spec(cluster_client, namespace))["holderIdentity"] == "other"


async def test_a_leader_that_loses_its_lease_ends(cluster_client: Client, namespace: str) -> None:
    election = candidate(cluster_client, namespace, "a")
    await election.acquire()
    await cluster_client.patch(LEASE, Key(namespace, NAME), {"spec": {"holderIdentity": "usurper"}})

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(LostLeadership, match="is now held by usurper"):
            await election.hold()

    await election.release()
    assert (await spec(cluster_client, namespace))["holderIdentity"] == "usurper"


@pytest.mark.parametrize("within", [None, 30.0])
async def test_a_replica_that_lost_leadership_does_not_send_writes(
    cluster_client: Client, namespace: str, within: float | None
) -> None:
    election = candidate(cluster_client, namespace, "a")
    guarded = cluster_client.guarded(election.check, within=within)
    written, refused = config_map("written", namespace), config_map("refused", namespace)
    await election.acquire()
    stored = await guarded.create(written)
    await election.release()

    writes: list[Awaitable[object]] = [
        guarded.create(refused),
        guarded.update({**stored, "data": {"a": "b"}}),
        guarded.patch(CONFIG_MAP, Key.of(written), {"data": {"a": "b"}}),
        guarded.apply({**written, "data": {"a": "b"}}, manager="test"),
        guarded.delete(CONFIG_MAP, Key.of(written)),
    ]
    for write in writes:
        with pytest.raises(LostLeadership):
            await write

    assert await guarded.get(CONFIG_MAP, Key.of(written)) == stored
    assert await guarded.list(CONFIG_MAP, namespace, fields="metadata.name=refused") == []


async def test_a_write_that_a_paused_process_sends_too_late_is_not_executed(
    kubeconfig: Path, cluster_client: Client, namespace: str
) -> None:
    late = config_map("late", namespace)
    async with (
        CuttableProxy(load(kubeconfig)) as proxy,
        Client.connect(proxy.config) as client,
        asyncio.timeout(PATIENCE),
    ):
        # The body is sent after the server has given up, as if the process had been paused.
        guarded = client.guarded(proxy.hold_back, within=1.0)
        with pytest.raises(ApiError, match="504"):
            await guarded.create(late)

    assert await cluster_client.find(CONFIG_MAP, Key.of(late)) is None
