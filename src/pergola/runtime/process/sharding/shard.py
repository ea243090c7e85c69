"""One replica as a shard, which works only while it holds its own Lease (decision 0440)."""

import asyncio
import re
import socket
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pergola.kube.client import Client
from pergola.runtime.logging import get_logger
from pergola.runtime.process.leader_election import LeaderElection, LeaseClient, LostLeadership
from pergola.runtime.process.options import ShardLease
from pergola.runtime.process.sharding.flights import Flights
from pergola.runtime.process.sharding.ring import RING_LABEL, Share
from pergola.runtime.task_group import gathered

K = TypeVar("K")
log = get_logger("shard")

LANDING_SECONDS: Final = 3.0
"""The time for which a shard that ends waits for its writes: less than a process has to end."""
_LONGEST_LABEL: Final = 63
_UNIQUE: Final = 8


class LostShard(LostLeadership):
    """This replica has lost its Lease: all of its work must stop."""


class Shard:
    """This replica as a member of a ring.

    Args:
        client: for the cluster that has the Lease.
        name: of the shard and its Lease; unique to each process, because the sharder reassigns the
            objects of an expired Lease, and no other process may revive it.

    Attributes:
        share: the objects that are assigned to it.
    """

    def __init__(self, client: LeaseClient, options: ShardLease, *, name: str = "") -> None:
        self.share = Share(options.ring, name or shard_name())
        self._flights: list[Flights[Any]] = []
        self._lease_duration = options.times.lease_duration
        self._lease = LeaderElection(
            client,
            options.namespace,
            self.share.shard,
            self.share.shard,
            times=options.times,
            labels={RING_LABEL: options.ring},
            role="shard",
        )

    def guarded(self, client: Client) -> Client:
        """Return a client whose writes take effect before another shard may have the objects.

        A write leaves before the renew deadline, and the server carries it out within the duration
        of a Lease or never; the sharder waits for two of them.
        """
        return client.guarded(self._lease.check, within=self._lease_duration)

    def flights(self, is_here: Callable[[K], bool]) -> Flights[K]:
        """Return a record of the work under way, which the shard waits for before it ends."""
        flights = Flights(is_here)
        self._flights.append(flights)
        return flights

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Take the Lease and work until cancelled; then finish the work under way and release it.

        Raises:
            LostShard: the Lease was lost, and the work stopped at once.
        """
        await self._lease.acquire()
        holding = asyncio.ensure_future(self._lease.hold())
        working = asyncio.ensure_future(work())
        released = False
        try:
            await asyncio.wait({holding, working}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            released = await self._landed()
            raise
        finally:
            for task in (holding, working):
                task.cancel()
            await asyncio.gather(holding, working, return_exceptions=True)
            if released:
                await self._lease.release()
        if not holding.cancelled() and (lost := holding.exception()) is not None:
            raise LostShard(str(lost))
        await working

    async def _landed(self) -> bool:
        """Begin nothing new; return whether every write was answered in time."""
        try:
            async with asyncio.timeout(LANDING_SECONDS):
                return all(await gathered(flights.close() for flights in self._flights))
        except TimeoutError:
            log.info("writes are still under way: the lease is left to expire")
            return False


def shard_name() -> str:
    """Return a name that is unique to this process and valid as the value of a label."""
    host = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower())
    host = host[: _LONGEST_LABEL - _UNIQUE - 1].strip("-.")
    return f"{host or 'shard'}-{uuid.uuid4().hex[:_UNIQUE]}"
