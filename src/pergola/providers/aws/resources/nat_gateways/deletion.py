"""Delete the NAT gateway of a zone, and wait until it is gone; all zones are polled together."""

import asyncio
from typing import Final

from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.resources.nat_gateways.facts import (
    DELETED,
    FAILED,
    of_zone,
    state_of,
)
from pergola.providers.aws.resources.ours import vpc_of
from pergola.providers.aws.resources.removal import (
    LONG_POLLS,
    deletion_step,
    each,
    remove,
    to_delete,
)
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work

_GONE: Final = (DELETED, FAILED)
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

    async def until_gone(self, work: Work, name: str) -> None:
        """Wait for a gateway.

        Raises:
            ExtensionError: It still exists after nearly 3 minutes.
        """
        self._waiting.add(name)
        for _ in range(LONG_POLLS):
            async with self._one:
                # While this one waited for its turn, another may have observed the awaited state.
                if name in self._waiting:
                    await asyncio.sleep(work.poll_seconds)
                    await self._observe(work)
            if name not in self._waiting:
                return
        raise ExtensionError(
            f"NAT gateway {name} is still being deleted by AWS; it will be retried",
            Code.DEPENDENCIES,
        )

    async def _observe(self, work: Work) -> None:
        by_vpc = [{"Name": "vpc-id", "Values": [vpc_of(work)]}]
        found = await work.aws.pages("ec2", "DescribeNatGateways", "NatGateways", Filter=by_vpc)
        there = {nat["NatGatewayId"] for nat in found if nat.get("State") not in _GONE}
        self._waiting &= there


def delete_step(zone: str, watch: Watch, after: tuple[str, ...] = ()) -> Step:
    """Return the step that deletes a zone's NAT gateway."""

    async def delete(work: Work, name: str) -> None:
        if _state(work, name) != _DELETING:
            await remove(work, "DeleteNatGateway", NatGatewayId=name)
        await watch.until_gone(work, name)
        # Its description stays: its elastic IP is still needed.
        work.snapshot.nat_gateways.setdefault(name, {})["State"] = DELETED

    return deletion_step(
        delete_name(zone),
        lambda work: _gateways(work, zone),
        each(delete),
        keys=(of_zone(zone).key,),
        after=after,
        timeout=LONG_TIMEOUT,
    )


def _gateways(work: Work, zone: str) -> list[str]:
    return [name for name in to_delete(work, of_zone(zone)) if _state(work, name) not in _GONE]


def _state(work: Work, name: str) -> str:
    return state_of(work.snapshot.nat_gateways.get(name, {}))
