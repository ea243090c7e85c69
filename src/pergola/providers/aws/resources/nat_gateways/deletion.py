"""Delete the NAT gateway of a zone, and wait until it is gone; all zones are polled together."""

import asyncio
from collections.abc import Iterable
from typing import Final

from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.nat_gateways.facts import suffix_of
from pergola.providers.aws.resources.removal import (
    LONG_POLLS,
    forget,
    in_cluster_vpc,
    note,
    remove,
    to_delete,
    vpc_of,
)
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work

_GONE: Final = ("deleted", "failed")
"""A failed gateway occupies nothing."""
_DELETING: Final = "deleting"


def delete_name(zone: str) -> str:
    """Return the name of a zone's step."""
    return f"delete NAT gateway in {zone}"


class Watch:
    """Waits until NAT gateways are gone, with one request for all zones."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._one = asyncio.Lock()

    async def until_gone(self, work: Work, names: Iterable[str]) -> None:
        """Wait for gateways.

        Raises:
            ExtensionError: some still exist after nearly 3 minutes.
        """
        mine = set(names)
        self._waiting |= mine
        for _ in range(LONG_POLLS):
            async with self._one:
                # While this one waited for its turn, another may have observed the awaited state.
                if mine & self._waiting:
                    await asyncio.sleep(work.poll_seconds)
                    await self._observe(work)
            if not mine & self._waiting:
                return
        raise ExtensionError(
            f"NAT gateway {', '.join(sorted(mine & self._waiting))} is still being deleted by "
            "AWS; it will be retried",
            Code.DEPENDENCIES,
        )

    async def _observe(self, work: Work) -> None:
        by_vpc = [{"Name": "vpc-id", "Values": [vpc_of(work)]}]
        found = await work.aws.pages("ec2", "DescribeNatGateways", "NatGateways", Filter=by_vpc)
        there = {nat["NatGatewayId"] for nat in found if nat.get("State") not in _GONE}
        self._waiting &= there


def delete_step(zone: str, watch: Watch, after: tuple[str, ...] = ()) -> Step:
    """Return the step that deletes a zone's NAT gateway."""

    async def ensure(work: Work) -> None:
        names = _gateways(work, zone)
        for each in names:
            if work.snapshot.nat_gateways.get(each, {}).get("State") != _DELETING:
                await remove(work, "DeleteNatGateway", NatGatewayId=each)
        if names:
            await watch.until_gone(work, names)
        for each in names:
            # Its elastic IP is still needed.
            work.snapshot.nat_gateways.setdefault(each, {})["State"] = "deleted"
        forget(work, keys.zone_key(zone, keys.NAT_GATEWAY))

    def plan(work: Work) -> Note:
        return note(_gateways(work, zone))

    return Step(name=delete_name(zone), plan=plan, ensure=ensure, after=after, timeout=LONG_TIMEOUT)


def _gateways(work: Work, zone: str) -> list[str]:
    known = work.state.get(keys.zone_key(zone, keys.NAT_GATEWAY))
    names = (work.desired.name(suffix_of(work, zone)),)
    found = to_delete(work, work.snapshot.nat_gateways, (known,), names, in_cluster_vpc(work))
    return [
        each for each in found if work.snapshot.nat_gateways.get(each, {}).get("State") not in _GONE
    ]
