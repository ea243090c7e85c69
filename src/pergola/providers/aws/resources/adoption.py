"""Find what was created before: by the state, else by its tags (spec 30 §3.1).

Only resources in the cluster's own VPC are accepted, and only an unambiguous one is adopted.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.waiting import LOOKS

Accept = Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of things in EC2.

    Attributes:
        things: where a `Snapshot` has them.
        describe: the call that describes them.
        items: what its answer calls them.
        id: what their id is called; with an `s`, what the call takes.
        resource: what tags in a creating call are for.
    """

    things: str
    describe: str
    items: str
    id: str
    resource: str

    def known(self, work: Work) -> dict[str, JsonObject]:
        """Those that were described."""
        found: dict[str, JsonObject] = getattr(work.snapshot, self.things)
        return found

    def named(self, work: Work, name: str | None) -> JsonObject | None:
        """The one of an id, if it was described."""
        return self.known(work).get(name) if name else None


def in_vpc(work: Work) -> Accept:
    """Accepts what belongs to the cluster's VPC; nothing while there is none."""
    vpc = work.state.get(keys.VPC)
    return lambda thing: vpc is not None and thing.get("VpcId") == vpc


def attached_to_vpc(work: Work) -> Accept:
    """Accepts a gateway that is attached to the cluster's VPC, or to nothing yet."""
    vpc = work.state.get(keys.VPC)

    def accept(gateway: JsonObject) -> bool:
        attachments = gateway.get("Attachments") or []
        return not attachments or any(each.get("VpcId") == vpc for each in attachments)

    return accept


def everything(thing: JsonObject) -> bool:
    """Accepts what belongs to no VPC."""
    del thing
    return True


def known(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", **more: str
) -> str | None:
    """The id of what was created before, as far as the state and the snapshot say.

    Raises:
        ExtensionError: the state knows none, and several have its tags.
    """
    name = work.state.get(key)
    thing = kind.named(work, name)
    if thing is not None and accept(thing):
        return name
    accepted = {name: thing for name, thing in kind.known(work).items() if accept(thing)}
    return tags.only_one(work, accepted, suffix, **more)


def foreseen(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", *, new: str, **more: str
) -> Note:
    """What would become of one thing: kept, with other tags, or created.

    Args:
        new: what would be created.
    """
    name = known(work, kind, key, accept, suffix, **more)
    if name is None:
        return Note(Fate.CREATE, new)
    thing = kind.known(work)[name]
    if any(tags.differing(work, thing, work.wanted.tags(suffix, **more))):
        return Note(Fate.CHANGE, f"{name}: its tags")
    return Note(Fate.KEEP, name)


async def find(
    work: Work, kind: Kind, key: str, accept: Accept, suffix: str = "", **more: str
) -> JsonObject | None:
    """What was created before, with the tags that it should have, and its id in the state.

    What the state knows and the snapshot does not may be newer than the snapshot, or not yet seen
    everywhere: it is looked for before it is believed to be gone.

    Raises:
        ExtensionError: the state knows none, and several have its tags.
        CloudError: AWS refused.
    """
    await refresh(work, kind, key)
    name = known(work, kind, key, accept, suffix, **more)
    if name is None:
        work.state.forget(key)
        return None
    work.state.set(key, name)
    thing = kind.known(work)[name]
    await tags.retag(work, name, thing, work.wanted.tags(suffix, **more))
    return thing


async def refresh(work: Work, kind: Kind, key: str) -> None:
    """Looks for what the state knows and the snapshot does not.

    Raises:
        CloudError: AWS refused.
    """
    name = work.state.get(key)
    if name is None or kind.named(work, name) is not None:
        return
    for look in range(LOOKS):
        if look:
            await asyncio.sleep(work.poll_seconds)
        if await described(work, kind, name) is not None:
            return


async def described(work: Work, kind: Kind, name: str) -> JsonObject | None:
    """What AWS says of one thing now; None if it does not see it. The snapshot learns it.

    Raises:
        CloudError: AWS refused.
    """
    try:
        answer = await work.aws.call("ec2", kind.describe, **{f"{kind.id}s": [name]})
    except NotFound:
        return None
    things: list[JsonObject] = answer.get(kind.items) or []
    if not things:
        return None
    kind.known(work)[name] = things[0]
    return things[0]


def remember(work: Work, kind: Kind, key: str, thing: JsonObject) -> str:
    """Remembers what was just created, at once; returns its id."""
    name: str = thing[kind.id]
    work.state.created(key, name)
    kind.known(work)[name] = thing
    return name


DHCP_OPTIONS: Final = Kind(
    "dhcp_options", "DescribeDhcpOptions", "DhcpOptions", "DhcpOptionsId", "dhcp-options"
)

INTERNET_GATEWAY: Final = Kind(
    "internet_gateways",
    "DescribeInternetGateways",
    "InternetGateways",
    "InternetGatewayId",
    "internet-gateway",
)

EGRESS_ONLY_GATEWAY: Final = Kind(
    "egress_only_gateways",
    "DescribeEgressOnlyInternetGateways",
    "EgressOnlyInternetGateways",
    "EgressOnlyInternetGatewayId",
    "egress-only-internet-gateway",
)

SUBNET: Final = Kind("subnets", "DescribeSubnets", "Subnets", "SubnetId", "subnet")

ROUTE_TABLE: Final = Kind(
    "route_tables", "DescribeRouteTables", "RouteTables", "RouteTableId", "route-table"
)

NAT_GATEWAY: Final = Kind(
    "nat_gateways", "DescribeNatGateways", "NatGateways", "NatGatewayId", "natgateway"
)

ADDRESS: Final = Kind("addresses", "DescribeAddresses", "Addresses", "AllocationId", "elastic-ip")

ENDPOINT: Final = Kind(
    "endpoints", "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", "vpc-endpoint"
)
