import asyncio
import copy
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from pergola.api.kinds import LEASE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.errors import AlreadyExists, Conflict, NotFound, Unreachable
from pergola.runtime.clock import FakeClock, monotonic
from pergola.runtime.process import leader_election
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership
from pergola.runtime.process.options import LeaseTimes

pytestmark = pytest.mark.looptime

NOW = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)
KEY = Key("garden", "gardener-resource-manager")


class WallClock:
    """A wall clock that runs with the event loop's virtual time, and may be wrong."""

    def __init__(self, skew: float = 0) -> None:
        self._skew = skew

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self._skew + monotonic())


class Leases:
    """A server's only lease, with optimistic locking."""

    def __init__(self) -> None:
        self.lease: JsonObject | None = None
        self.version = 0
        self.writes: list[tuple[float, str]] = []
        self.gets = 0
        self.followers: list[Callable[[], None]] = []

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        assert (gvk, key) == (LEASE, KEY)
        self.gets += 1
        await asyncio.sleep(0.001)
        if self.lease is None:
            raise NotFound(404, {})
        return copy.deepcopy(self.lease)

    async def follow(self, freed: Callable[[], None]) -> None:
        """Call `freed` whenever the lease becomes free, as a watch does."""
        self.followers.append(freed)
        try:
            await asyncio.Event().wait()
        finally:
            self.followers.remove(freed)

    async def create(self, obj: JsonObject) -> JsonObject:
        await asyncio.sleep(0.001)
        if self.lease is not None:
            raise AlreadyExists(409, {"reason": "AlreadyExists"})
        return self._store(obj)

    async def update(self, obj: JsonObject) -> JsonObject:
        await asyncio.sleep(0.001)
        if self.lease is None:
            raise NotFound(404, {})
        stored = self.lease["metadata"]["resourceVersion"]
        if obj["metadata"]["resourceVersion"] != stored:
            raise Conflict(409, {"reason": "Conflict", "message": "changed meanwhile"})
        return self._store(obj)

    def touch(self, **metadata: str) -> None:
        """Edit the lease as another client."""
        assert self.lease is not None
        self._store({**self.lease, "metadata": {**self.lease["metadata"], **metadata}})

    def delete(self) -> None:
        """Delete the lease as another client."""
        self.lease = None
        self.report()

    def report(self) -> None:
        """Report to the followers that the lease is free, whether true or not."""
        for freed in self.followers:
            freed()

    def _store(self, obj: JsonObject) -> JsonObject:
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        self.lease = copy.deepcopy({**obj, "metadata": metadata})
        self.writes.append((monotonic(), self.spec["holderIdentity"]))
        if not self.spec["holderIdentity"]:
            self.report()
        return copy.deepcopy(self.lease)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


State = Literal["up", "down", "silent", "answers are lost"]


class Line:
    """A replica's connection to the server, which can be interrupted."""

    def __init__(self, server: Leases) -> None:
        self.server = server
        self.state: State = "up"

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        await self._pass()
        return await self.server.get(gvk, key)

    async def create(self, obj: JsonObject) -> JsonObject:
        await self._pass()
        return await self.server.create(obj)

    async def update(self, obj: JsonObject) -> JsonObject:
        await self._pass()
        answer = await self.server.update(obj)
        if self.state == "answers are lost":
            await asyncio.Event().wait()
        return answer

    async def _pass(self) -> None:
        if self.state == "down":
            raise Unreachable("cannot reach https://api")
        if self.state == "silent":
            await asyncio.Event().wait()


def candidate(
    client: Leases | Line, identity: str, *, skew: float = 0, jitter: float = 0.5
) -> LeaderElection:
    return LeaderElection(
        client, KEY.namespace, KEY.name, identity, clock=WallClock(skew), random=lambda: jitter
    )


async def lead(election: LeaderElection, led: list[str], name: str) -> None:
    """Lead until cancelled, and record the start and end."""

    async def work() -> None:
        led.append(f"{name} began")
        try:
            await asyncio.Event().wait()
        finally:
            led.append(f"{name} ended")

    await election.run(work)


async def stop(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_first_candidate_creates_the_lease_as_client_go_writes_it() -> None:
    server = Leases()
    election = LeaderElection(server, KEY.namespace, KEY.name, "a", clock=FakeClock(NOW))
    before = election.is_leader

    await election.acquire()

    assert (before, election.is_leader) == (False, True)
    assert server.lease == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name, "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-21T12:00:00.000005Z",
            "renewTime": "2026-11-21T12:00:00.000005Z",
            "leaseTransitions": 0,
        },
    }


async def test_a_leader_renews_every_retry_period_with_one_request() -> None:
    server = Leases()
    election = candidate(server, "a")
    await election.acquire()
    gets = server.gets
    holding = asyncio.create_task(election.hold())

    await asyncio.sleep(11)

    assert [round(at) for at, _ in server.writes] == [0, 2, 4, 6, 8, 10]
    assert server.gets == gets
    assert server.spec["leaseTransitions"] == 0
    await stop(holding)


async def test_renewing_changes_only_the_renew_time() -> None:
    server, clock = Leases(), FakeClock(NOW)
    election = LeaderElection(server, KEY.namespace, KEY.name, "a", clock=clock)
    await election.acquire()
    before = dict(server.spec)
    clock.set(NOW + timedelta(seconds=2))
    holding = asyncio.create_task(election.hold())

    await asyncio.sleep(3)

    assert server.spec == {**before, "renewTime": "2026-11-21T12:00:02.000005Z"}
    await stop(holding)


async def test_of_two_replicas_exactly_one_leads() -> None:
    server, led = Leases(), list[str]()
    tasks = [
        asyncio.create_task(lead(candidate(server, name), led, name)) for name in ("a", "b", "c")
    ]

    await asyncio.sleep(600)

    assert len(led) == 1
    assert {holder for _, holder in server.writes} == {led[0].split()[0]}
    for task in tasks:
        await stop(task)


async def test_another_replica_takes_over_once_the_lease_of_a_dead_leader_expires() -> None:
    server, led = Leases(), list[str]()
    line = Line(server)
    first = candidate(line, "a")
    await first.acquire()
    dying = asyncio.create_task(first.hold())
    other = asyncio.create_task(lead(candidate(server, "b"), led, "b"))
    await asyncio.sleep(60)
    assert led == []

    dying.cancel()  # without a release, as a process that was killed
    last_renewal = server.writes[-1][0]
    await asyncio.sleep(30)

    assert led == ["b began"]
    taken = next(at for at, holder in server.writes if holder == "b")
    # The other one checks every 3.2 seconds, so it may have seen the last renewal that late.
    assert 15 <= taken - last_renewal <= 15 + 3.3
    assert server.spec["leaseTransitions"] == 1
    await stop(other)


def follower(server: Leases, identity: str) -> LeaderElection:
    """Return a candidate that follows the lease, and otherwise retries only every minute."""
    return LeaderElection(
        server,
        KEY.namespace,
        KEY.name,
        identity,
        times=LeaseTimes(lease_duration=300, renew_deadline=200, retry_period=60),
        follow=server.follow,
    )


async def test_a_following_candidate_leads_as_soon_as_the_lease_is_released() -> None:
    server = Leases()
    first, other = candidate(server, "a"), follower(server, "b")
    await first.acquire()
    waiting = asyncio.create_task(other.acquire())
    await asyncio.sleep(5)

    await first.release()
    released = monotonic()
    await waiting

    assert monotonic() - released < 0.1
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("b", 1)
    assert server.followers == []


async def test_a_following_candidate_creates_a_deleted_lease_at_once() -> None:
    server = Leases()
    await candidate(server, "a").acquire()
    waiting = asyncio.create_task(follower(server, "b").acquire())
    await asyncio.sleep(5)

    server.delete()
    deleted = monotonic()
    await waiting

    assert monotonic() - deleted < 0.1


async def test_a_late_report_of_a_release_does_not_take_a_held_lease() -> None:
    server, led = Leases(), list[str]()
    first = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(1)
    second = asyncio.create_task(lead(follower(server, "b"), led, "b"))
    for _ in range(10):
        await asyncio.sleep(5)
        server.report()

    await asyncio.sleep(1)

    assert led == ["a began"]
    await stop(first)
    await stop(second)


async def test_one_of_many_following_candidates_leads_after_a_release() -> None:
    server, led = Leases(), list[str]()
    first = candidate(server, "a")
    await first.acquire()
    others = [
        asyncio.create_task(lead(follower(server, name), led, name)) for name in ("b", "c", "d")
    ]
    await asyncio.sleep(5)

    await first.release()
    await asyncio.sleep(600)

    assert len(led) == 1
    for task in others:
        await stop(task)


async def test_a_candidate_that_follows_the_lease_of_a_dead_leader_waits_until_it_expires() -> None:
    server = Leases()
    await candidate(server, "a").acquire()
    began = monotonic()

    await follower(server, "b").acquire()

    assert 15 <= monotonic() - began < 15.1


async def test_a_cancelled_candidate_stops_following_the_lease() -> None:
    server = Leases()
    await candidate(server, "a").acquire()
    waiting = asyncio.create_task(follower(server, "b").acquire())
    await asyncio.sleep(5)
    assert len(server.followers) == 1

    await stop(waiting)

    assert server.followers == []


@pytest.mark.parametrize("skew", [-3600, 3600])
async def test_clock_skew_does_not_matter(skew: int) -> None:
    server, led = Leases(), list[str]()
    first = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(1)
    second = asyncio.create_task(lead(candidate(server, "b", skew=skew), led, "b"))

    await asyncio.sleep(300)

    assert led == ["a began"]
    await stop(first)
    await stop(second)


async def test_a_stopping_leader_releases_the_lease_and_another_soon_leads() -> None:
    server, led = Leases(), list[str]()
    first = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(1)
    second = asyncio.create_task(lead(candidate(server, "b"), led, "b"))
    await asyncio.sleep(20)

    await stop(first)
    released = dict(server.spec)
    await asyncio.sleep(3.3)  # one check by the other one

    assert released["holderIdentity"] == ""
    assert released["leaseDurationSeconds"] == 1
    assert led == ["a began", "a ended", "b began"]
    assert (server.spec["holderIdentity"], server.spec["leaseTransitions"]) == ("b", 1)
    await stop(second)


async def test_the_lease_is_released_after_the_work_has_ended() -> None:
    server = Leases()
    holders: list[str] = []

    async def work() -> str:
        try:
            await asyncio.sleep(5)
        finally:
            await asyncio.sleep(5)
            holders.append(server.spec["holderIdentity"])
        return "result"

    assert await candidate(server, "a").run(work) == "result"
    assert holders == ["a"]
    assert server.spec["holderIdentity"] == ""


async def test_an_error_of_the_work_is_passed_on_and_the_lease_is_released() -> None:
    server = Leases()

    async def work() -> None:
        await asyncio.sleep(5)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await candidate(server, "a").run(work)
    assert server.spec["holderIdentity"] == ""


@pytest.mark.parametrize("failure", ["down", "silent"])
async def test_a_leader_that_cannot_renew_ends_before_another_can_lead(failure: State) -> None:
    server, led = Leases(), list[str]()
    line = Line(server)
    ended: list[float] = []

    async def first() -> None:
        with pytest.raises(LostLeadership, match="could not be renewed for 10 seconds"):
            await lead(candidate(line, "a"), led, "a")
        ended.append(monotonic())

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        await asyncio.sleep(9)
        second = group.create_task(lead(candidate(server, "b", jitter=0), led, "b"))
        line.state = failure
        last_renewal = server.writes[-1][0]
        await asyncio.sleep(30)
        second.cancel()

    assert led == ["a began", "a ended", "b began", "b ended"]
    assert ended[0] - last_renewal <= 10
    taken = next(at for at, holder in server.writes if holder == "b")
    assert taken - last_renewal >= 15


@pytest.mark.parametrize("failure", ["down", "silent"])
async def test_a_short_outage_costs_no_leadership(failure: State) -> None:
    server, led = Leases(), list[str]()
    line = Line(server)
    task = asyncio.create_task(lead(candidate(line, "a"), led, "a"))
    await asyncio.sleep(5)
    line.state = failure
    await asyncio.sleep(7)
    line.state = "up"
    await asyncio.sleep(20)
    assert led == ["a began"]
    await stop(task)


async def test_an_edit_of_the_lease_by_another_client_does_not_cost_the_leadership() -> None:
    server, led = Leases(), list[str]()
    task = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(5)
    server.touch(note="edited")
    await asyncio.sleep(5)

    assert led == ["a began"]
    assert server.lease is not None
    assert server.lease["metadata"]["note"] == "edited"
    assert server.writes[-1][0] > 7
    await stop(task)


async def test_a_deleted_lease_is_recreated() -> None:
    server, led = Leases(), list[str]()
    task = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(5)
    server.lease = None
    await asyncio.sleep(3)

    assert led == ["a began"]
    assert server.spec["holderIdentity"] == "a"
    await stop(task)


async def test_a_leader_stops_at_once_when_another_takes_its_lease() -> None:
    server, led = Leases(), list[str]()
    task = asyncio.create_task(lead(candidate(server, "a"), led, "a"))
    await asyncio.sleep(5)
    server.spec["holderIdentity"] = "b"
    server.touch()

    with pytest.raises(LostLeadership, match="garden/gardener-resource-manager is now held by b"):
        await task

    assert monotonic() < 7
    assert led == ["a began", "a ended"]
    assert server.spec["holderIdentity"] == "b"  # not released: it is not ours


async def test_a_replica_suspended_past_its_lease_no_longer_leads() -> None:
    server = Leases()
    election = candidate(server, "a")
    await election.acquire()
    await asyncio.sleep(15)
    assert not election.is_leader
    with pytest.raises(LostLeadership):
        await election.hold()


async def test_without_leader_election_nothing_is_held_or_released() -> None:
    server = Leases()
    election = candidate(server, "a")
    await election.release()
    with pytest.raises(LostLeadership, match="is not held by this process"):
        await election.hold()
    assert server.writes == []


async def test_a_lease_is_respected_for_the_duration_set_by_its_holder() -> None:
    server = Leases()
    times = LeaseTimes(lease_duration=60)
    holder = LeaderElection(server, KEY.namespace, KEY.name, "a", times=times)
    await holder.acquire()
    await candidate(server, "b").acquire()
    assert 60 <= monotonic() < 61


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": ""}, {"holderIdentity": "me"}])
async def test_a_free_or_own_lease_is_taken_at_once(spec: JsonObject) -> None:
    server = Leases()
    server.lease = {"metadata": {"name": KEY.name, "resourceVersion": "0"}, "spec": spec}
    await candidate(server, "me").acquire()
    assert monotonic() < 1
    assert server.spec["holderIdentity"] == "me"


async def test_foreign_fields_of_the_lease_are_kept() -> None:
    server = Leases()
    spec = {"holderIdentity": "", "strategy": "OldestEmulationVersion", "leaseTransitions": 7}
    server.lease = {"metadata": {"name": KEY.name, "resourceVersion": "0"}, "spec": spec}
    await candidate(server, "me").acquire()
    assert server.spec["strategy"] == "OldestEmulationVersion"
    assert server.spec["leaseTransitions"] == 8


async def test_the_lease_is_released_even_if_the_last_renewal_was_cancelled() -> None:
    server = Leases()
    line = Line(server)
    election = candidate(line, "a")
    await election.acquire()
    holding = asyncio.create_task(election.hold())
    line.state = "answers are lost"
    await asyncio.sleep(2.5)  # the renewal was stored, but its response was lost
    await stop(holding)
    line.state = "up"

    await election.release()

    assert server.spec["holderIdentity"] == ""
    assert not election.is_leader


@pytest.mark.parametrize("failure", ["down", "silent"])
async def test_a_release_that_fails_ends_soon_and_raises_nothing(failure: State) -> None:
    server = Leases()
    line = Line(server)
    election = candidate(line, "a")
    await election.acquire()
    line.state = failure
    began = monotonic()
    await election.release()
    assert monotonic() - began <= leader_election.RELEASE_SECONDS
    assert not election.is_leader


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 2.0), (1.0, 4.4)])
async def test_candidates_check_the_lease_in_jittered_periods(
    jitter: float, seconds: float
) -> None:
    server = Leases()
    line = Line(server)
    line.state = "down"
    waiting = asyncio.create_task(candidate(line, "a", jitter=jitter).acquire())
    await asyncio.sleep(seconds - 0.01)
    line.state = "up"
    assert server.gets == 0
    await asyncio.sleep(0.05)
    assert server.gets == 1
    await waiting


@pytest.mark.parametrize(
    ("lease", "renew", "retry"), [(10, 10, 2), (15, 10, 9), (15, 10, 0), (5, 10, 2)]
)
def test_invalid_periods_are_refused(lease: float, renew: float, retry: float) -> None:
    times = LeaseTimes(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    with pytest.raises(ValueError, match="must hold"):
        LeaderElection(Leases(), "n", "l", "a", times=times)


# Writes of a leader


async def test_a_leader_may_write_from_its_first_renewal_until_it_releases_the_lease() -> None:
    election = candidate(Leases(), "a")
    with pytest.raises(LostLeadership):
        election.check()
    await election.acquire()
    election.check()
    await election.release()
    with pytest.raises(LostLeadership, match="garden/gardener-resource-manager"):
        election.check()


async def test_a_leader_that_cannot_renew_stops_writing_before_another_one_may_lead() -> None:
    line = Line(Leases())
    election, other = candidate(line, "a"), candidate(line.server, "b")
    await election.acquire()
    line.state = "down"
    last = monotonic()
    task = asyncio.create_task(other.acquire())
    while not task.done():
        with suppress(LostLeadership):
            election.check()
            last = monotonic()
        await asyncio.sleep(0.1)
    assert monotonic() - last >= 4.9  # the last request has this long to arrive


async def test_a_resumed_leader_writes_nothing_after_its_lease_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    election = candidate(Leases(), "a")
    await election.acquire()
    resumed = monotonic() + 20
    monkeypatch.setattr(leader_election, "monotonic", lambda: resumed)
    with pytest.raises(LostLeadership):
        election.check()
