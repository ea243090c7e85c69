import asyncio
import re
from typing import Any

import pytest

from pergola.api.kinds import LEASE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership

NAME = "gardener-resource-manager"
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def candidate(client: Client, namespace: str, identity: str) -> LeaderElection:
    """One that is quick enough for a test, and never waits for chance."""
    return LeaderElection(
        client,
        namespace,
        NAME,
        identity,
        lease_duration=2.0,
        renew_deadline=1.5,
        retry_period=0.2,
        random=lambda: 0.0,
    )


async def spec(client: Client, namespace: str) -> JsonObject:
    lease = await client.get(LEASE, Key(namespace, NAME))
    fields: dict[str, Any] = lease["spec"]
    return fields


async def test_of_two_replicas_one_leads_and_hands_over_when_it_stops(
    cluster_client: Client, namespace: str
) -> None:
    leading: asyncio.Queue[str] = asyncio.Queue()

    async def replica(identity: str) -> None:
        async def lead() -> None:
            leading.put_nowait(identity)
            await asyncio.Event().wait()

        await candidate(cluster_client, namespace, identity).run(lead)

    replicas = {identity: asyncio.create_task(replica(identity)) for identity in ("a", "b")}
    async with asyncio.timeout(10):
        first = await leading.get()
        held = await spec(cluster_client, namespace)
        replicas.pop(first).cancel()
        second = await leading.get()
    taken = await spec(cluster_client, namespace)

    assert {first, second} == {"a", "b"}
    assert (held["holderIdentity"], held["leaseTransitions"]) == (first, 0)
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == (second, 1)
    assert taken["leaseDurationSeconds"] == 2
    assert MICRO_TIME.fullmatch(taken["acquireTime"])
    assert MICRO_TIME.fullmatch(taken["renewTime"])

    [(_, last)] = replicas.items()
    last.cancel()
    with pytest.raises(asyncio.CancelledError):
        await last
    released = await spec(cluster_client, namespace)
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)


async def test_a_leader_that_vanishes_is_succeeded_when_its_lease_is_over(
    cluster_client: Client, namespace: str
) -> None:
    await candidate(cluster_client, namespace, "gone").acquire()
    loop = asyncio.get_running_loop()
    began = loop.time()

    other = candidate(cluster_client, namespace, "other")
    async with asyncio.timeout(10):
        await other.acquire()

    assert loop.time() - began >= 2.0
    assert (await spec(cluster_client, namespace))["holderIdentity"] == "other"


async def test_a_leader_whose_lease_is_taken_from_it_ends(
    cluster_client: Client, namespace: str
) -> None:
    election = candidate(cluster_client, namespace, "a")
    await election.acquire()
    await cluster_client.patch(LEASE, Key(namespace, NAME), {"spec": {"holderIdentity": "usurper"}})

    async with asyncio.timeout(5):
        with pytest.raises(LostLeadership, match="is now held by usurper"):
            await election.hold()

    await election.release()
    assert (await spec(cluster_client, namespace))["holderIdentity"] == "usurper"
