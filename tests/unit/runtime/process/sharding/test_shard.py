"""A shard works while it holds its Lease, and releases the Lease once no run is in progress."""

import asyncio
import copy
from typing import Literal

import pytest

from pergola.api.kinds import LEASE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, Unreachable
from pergola.kube.guards import Permission
from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.process.leader_election import LostLeadership
from pergola.runtime.process.options import ShardLease
from pergola.runtime.process.sharding.flights import Flights
from pergola.runtime.process.sharding.shard import LostShard, Shard

pytestmark = pytest.mark.looptime

NAME = "shard-a"


class Leases:
    """A server with the Lease of the shard."""

    def __init__(self) -> None:
        self.lease: JsonObject = {}
        self.state: Literal["up", "down"] = "up"
        self.version = 0

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        assert (gvk, key) == (LEASE, Key("garden", NAME))
        if not self.lease:
            raise NotFound(404, {})
        return copy.deepcopy(self.lease)

    async def create(self, obj: JsonObject) -> JsonObject:
        return await self.update(obj)

    async def update(self, obj: JsonObject) -> JsonObject:
        if self.state == "down":
            raise Unreachable("cannot reach https://api")
        self.version += 1
        self.lease = copy.deepcopy(obj)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"])


class Site:
    """A shard with one reconciler, whose runs end when the test says so."""

    def __init__(self) -> None:
        self.server = Leases()
        self.shard = Shard(self.server, ShardLease(ring="widgets", namespace="garden"), name=NAME)
        self.may_end = asyncio.Event()
        self.lines: list[str] = []
        flights: Flights[str] = self.shard.flights(lambda _: True)
        self._reconcile = flights.tracked(self._run)

    async def _run(self, key: str) -> Outcome:
        self.lines.append(f"{key} began")
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.lines.append(f"{key} was cut off")
            raise
        self.lines.append(f"{key} ended")
        return DONE

    async def work(self) -> None:
        await self._reconcile("first")
        await asyncio.Event().wait()

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.shard.run(self.work))


class Guarded(Client):
    """A client that keeps the guard of its writes."""

    def __init__(self) -> None:
        self.permission: Permission = lambda: None
        self.within: float | None = None

    def guarded(self, permission: Permission, *, within: float | None = None) -> "Guarded":
        guarded = Guarded()
        guarded.permission, guarded.within = permission, within
        return guarded


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_lease_has_the_name_of_its_holder_and_the_label_of_the_ring() -> None:
    site = Site()
    running = site.start()
    await asyncio.sleep(5)

    metadata = site.server.lease["metadata"]
    assert (metadata["name"], site.server.holder) == (NAME, NAME)
    assert metadata["labels"] == {"alpha.sharding.timebertt.dev/controllerring": "widgets"}
    await stop(running)


async def test_the_lease_is_released_at_the_end_of_the_last_run() -> None:
    site = Site()
    running = site.start()
    await asyncio.sleep(5)
    running.cancel()
    await asyncio.sleep(1)
    assert (site.lines, site.server.holder) == (["first began"], NAME)

    site.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (site.lines, site.server.holder) == (["first began", "first ended"], "")


async def test_the_lease_of_a_shard_that_cannot_end_in_time_expires() -> None:
    site = Site()
    running = site.start()
    await asyncio.sleep(5)

    await stop(running)

    assert (site.lines, site.server.holder) == (["first began", "first was cut off"], NAME)


async def test_all_work_stops_when_the_lease_cannot_be_renewed() -> None:
    site = Site()
    running = site.start()
    await asyncio.sleep(5)
    site.server.state = "down"

    with pytest.raises(LostShard, match="could not be renewed for 10 seconds"):
        await running

    assert site.lines == ["first began", "first was cut off"]
    assert monotonic() <= 15


async def test_a_write_is_permitted_only_until_the_renew_deadline() -> None:
    site = Site()
    client = site.shard.guarded(Guarded())
    assert isinstance(client, Guarded)
    with pytest.raises(LostLeadership, match="not held"):
        client.permission()
    running = site.start()
    await asyncio.sleep(1)
    client.permission()

    running.cancel()  # it stops renewing, like a paused process
    await asyncio.sleep(20)

    with pytest.raises(LostLeadership, match="not held"):
        client.permission()
    await asyncio.gather(running, return_exceptions=True)
