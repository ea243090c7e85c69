"""Leader election: of several replicas, the one that holds and renews a Lease leads.

Compatible with client-go, so that replicas of either kind respect each other. No replica trusts
the clock of another: it considers a lease expired if the record has not changed for the lease's
duration, measured by the local clock since it saw the last change.
"""

import asyncio
import math
import random as system_random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol, TypeVar

from pergola.api.kinds import LEASE
from pergola.api.leases import holder_of
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.kube.errors import Conflict, KubeError, NotFound
from pergola.runtime.clock import Clock, SystemClock, monotonic
from pergola.runtime.controlling.controller import MustStop
from pergola.runtime.logging import get_logger
from pergola.runtime.process.lease_watch import Follow
from pergola.runtime.process.options import USUAL_TIMES, LeaseTimes
from pergola.runtime.task_group import TaskGroup

T = TypeVar("T")
log = get_logger("leader-election")

JITTER_FACTOR: Final = 1.2
RELEASE_SECONDS: Final = 5.0
_RELEASED_LEASE_SECONDS: Final = 1
_SHORTEST_PAUSE_SECONDS: Final = 0.01


class LostLeadership(MustStop):
    """This replica is no longer the leader, and must stop the work that only a leader does."""


class LeaseClient(Protocol):
    """The part of a client that an election needs."""

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        """See `pergola.kube.client.Client`."""
        ...

    async def create(self, obj: JsonObject) -> JsonObject:
        """See `pergola.kube.client.Client`."""
        ...

    async def update(self, obj: JsonObject) -> JsonObject:
        """See `pergola.kube.client.Client`."""
        ...


class LeaderElection:
    """A candidate for a lease.

    Args:
        client: for the cluster that has the lease.
        namespace: of the lease.
        name: of the lease, which is created if it does not exist.
        identity: of the candidate; unique to each process.
        times: of the lease.
        labels: of a lease that this candidate creates.
        role: of the holder, for the log.
        follow: reports a lease without a holder to a waiting candidate; without it, the candidate
            finds out at its next attempt.
        clock: for the timestamps in the lease.
        random: numbers from 0 to 1, so that candidates do not all try at once.
    """

    def __init__(
        self,
        client: LeaseClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes = USUAL_TIMES,
        labels: Mapping[str, str] | None = None,
        role: str = "leader",
        follow: Follow | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = system_random.random,
    ) -> None:
        shortest = times.retry_period * JITTER_FACTOR
        if not times.lease_duration > times.renew_deadline > shortest > 0:
            raise ValueError("lease duration > renew deadline > 1.2 x retry period must hold")
        self._client = client
        self._key = Key(namespace, name)
        self._identity = identity
        self._times = times
        self._labels = dict(labels or {})
        self._role = role
        self._follow = follow
        self._clock = clock or SystemClock()
        self._random = random
        self._lease: JsonObject = {}
        self._changed_at = 0.0
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this candidate holds an unexpired lease, so that no other one can lead."""
        return (
            self._renewed_at is not None
            and monotonic() < self._renewed_at + self._times.lease_duration
        )

    def check(self) -> None:
        """Permit a write of the leader; use it as the permission of a guarded client.

        A leader that was suspended, or cannot renew, stops writing at its renew deadline, so that
        its last writes arrive before another replica may lead.

        Raises:
            LostLeadership: this replica does not lead, or could not renew in time.
        """
        renewed_at = self._renewed_at
        if renewed_at is None or monotonic() >= renewed_at + self._times.renew_deadline:
            raise LostLeadership(f"the lease {self._key} is not held by this process any more")

    async def run(self, lead: Callable[[], Awaitable[T]]) -> T:
        """Wait for leadership, lead, and release the lease when `lead` has ended.

        `lead` is cancelled when leadership is lost.

        Raises:
            LostLeadership: another replica leads, or may soon.
        """
        await self.acquire()
        try:
            async with TaskGroup() as group:
                holding = group.create_task(self.hold(), name=f"lease {self._key}")
                result = await lead()
                holding.cancel()
            return result
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise
        finally:
            await self.release()

    async def acquire(self) -> None:
        """Wait until this replica leads."""
        log.info(f"waiting to be {self._role}", lease=str(self._key), identity=self._identity)
        if not await self._try():
            await self._stand_by()
        log.info(f"became {self._role}", lease=str(self._key), identity=self._identity)

    async def hold(self) -> NoReturn:
        """Renew the lease until a renewal fails for good.

        Raises:
            LostLeadership: another replica took the lease, or it could not be renewed in time.
        """
        try:
            while self._renewed_at is not None:
                await asyncio.sleep(self._times.retry_period)
                await self._renew(self._renewed_at + self._times.renew_deadline)
            raise LostLeadership(f"the lease {self._key} is not held by this process")
        except LostLeadership:
            self._renewed_at = None
            raise

    async def release(self) -> None:
        """Let another replica lead at once; do nothing if this one does not lead."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._give_up()
        except (KubeError, TimeoutError) as error:
            # It expires by itself.
            log.info("lease not released", lease=str(self._key), error=str(error))

    async def _stand_by(self) -> None:
        """Try to take the lease: periodically, when it expires, and as soon as it has no holder."""
        freed = asyncio.Event()
        async with TaskGroup() as group:
            following = group.create_task(self._follow(freed.set)) if self._follow else None
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await freed.wait()
                freed.clear()
                if await self._try():
                    break
            if following is not None:
                following.cancel()

    async def _renew(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                while not await self._try():
                    if self._is_held_by_another():
                        raise LostLeadership(
                            f"the lease {self._key} is now held by {holder_of(self._lease)}"
                        )
                    await asyncio.sleep(self._times.retry_period)
        except TimeoutError:
            seconds = f"{self._times.renew_deadline:g} seconds"
            raise LostLeadership(
                f"the lease {self._key} could not be renewed for {seconds}"
            ) from None

    async def _try(self) -> bool:
        """Try once to take or renew the lease; it lasts from before the request."""
        began = monotonic()
        try:
            # Half the deadline, so that one request without an answer leaves time for another.
            async with asyncio.timeout(self._times.renew_deadline / 2):
                done = await self._take()
        except Conflict as error:
            log.debug("lease changed meanwhile", lease=str(self._key), error=str(error))
            return False
        except (KubeError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            log.error("cannot read or write the lease", lease=str(self._key), error=reason)
            return False
        if done:
            self._renewed_at = began
        return done

    async def _take(self) -> bool:
        if self._renewed_at is not None:
            try:
                self._saw(await self._client.update(self._claimed()))
            except (Conflict, NotFound):
                pass  # another client changed it: read it first
            else:
                return True
        try:
            self._saw(await self._client.get(LEASE, self._key))
        except NotFound:
            self._lease = {}
            self._saw(await self._client.create(self._claimed()))
            return True
        if self._is_held_by_another():
            return False
        self._saw(await self._client.update(self._claimed()))
        return True

    async def _give_up(self) -> None:
        try:
            await self._client.update(self._released())
        except Conflict:
            # A cancelled renewal may have arrived nevertheless.
            self._saw(await self._client.get(LEASE, self._key))
            if holder_of(self._lease) == self._identity:
                await self._client.update(self._released())

    def _saw(self, lease: JsonObject) -> None:
        if lease.get("spec") != self._lease.get("spec"):
            self._changed_at = monotonic()
        self._lease = lease

    def _is_held_by_another(self) -> bool:
        return holder_of(self._lease) not in ("", self._identity) and self._remaining() > 0

    def _remaining(self) -> float:
        """Return the seconds until the lease expires unless it is renewed."""
        seconds = map_at(self._lease, "spec").get("leaseDurationSeconds")
        duration = seconds if isinstance(seconds, int) else self._times.lease_duration
        return self._changed_at + duration - monotonic()

    def _pause(self) -> float:
        """Return the seconds until the next attempt: jittered, but not after the lease expires."""
        pause = self._times.retry_period * (1 + JITTER_FACTOR * self._random())
        if not self._is_held_by_another():
            return pause
        return max(min(pause, self._remaining()), _SHORTEST_PAUSE_SECONDS)

    def _claimed(self) -> JsonObject:
        """Return the lease as held by this replica."""
        now, spec = _micro_time(self._clock.now()), map_at(self._lease, "spec")
        claim: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._times.lease_duration),
            "renewTime": now,
        }
        if holder_of(self._lease) != self._identity:
            claim["acquireTime"] = now
            transitions = spec.get("leaseTransitions")
            counted = transitions if isinstance(transitions, int) else 0
            claim["leaseTransitions"] = counted + 1 if spec else 0
        return self._with(claim)

    def _released(self) -> JsonObject:
        """Return the lease without a holder."""
        now = _micro_time(self._clock.now())
        return self._with(
            {
                "holderIdentity": "",
                "leaseDurationSeconds": _RELEASED_LEASE_SECONDS,
                "acquireTime": now,
                "renewTime": now,
            }
        )

    def _with(self, changes: JsonObject) -> JsonObject:
        metadata: JsonObject = {"namespace": self._key.namespace, "name": self._key.name}
        if self._labels:
            metadata["labels"] = self._labels
        return {
            **(self._lease or {"metadata": metadata}),
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "spec": {**map_at(self._lease, "spec"), **changes},
        }


def _micro_time(time: datetime) -> str:
    """Format the API's MicroTime, which always has six digits."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
