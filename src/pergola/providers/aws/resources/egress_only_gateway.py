"""The egress-only internet gateway, through which nodes reach the internet over IPv6."""

from typing import Final

from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import attached_to_vpc, find, foreseen, remember
from pergola.providers.aws.resources.gateways import ExistingGateway, gateways_to_delete
from pergola.providers.aws.resources.kinds import EGRESS_ONLY_GATEWAY
from pergola.providers.aws.resources.removal import forget, note, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible

DELETE: Final = "delete egress-only internet gateway"
_EXISTING: Final = ExistingGateway(
    keys.EGRESS_ONLY_GATEWAY,
    lambda work: work.snapshot.egress_only_gateways,
    "no egress-only internet gateway found for VPC {vpc}, which a cluster with IPv6 needs; "
    "create one",
)


def steps(desired: Desired) -> list[Step]:
    """Return the step for the gateway; skipped for user-provided subnets."""
    existing = desired.config.byo_vpc
    return [
        Step(
            name=names.EGRESS_ONLY_GATEWAY,
            plan=_EXISTING.plan if existing else _plan,
            ensure=_EXISTING.ensure if existing else _ensure,
            after=(names.VPC,),
            skip=_skip(desired),
        )
    ]


def _skip(desired: Desired) -> str | None:
    if not desired.ipv6:
        return "the cluster has no IPv6"
    return "the subnets are user-provided" if desired.config.byo_subnets else None


def _plan(work: Work) -> Note:
    accept = attached_to_vpc(work)
    return foreseen(
        work, EGRESS_ONLY_GATEWAY, keys.EGRESS_ONLY_GATEWAY, accept, new="attached to the VPC"
    )


async def _ensure(work: Work) -> None:
    accept = attached_to_vpc(work)
    if await find(work, EGRESS_ONLY_GATEWAY, keys.EGRESS_ONLY_GATEWAY, accept):
        return
    answer = await once_visible(
        work,
        "CreateEgressOnlyInternetGateway",
        VpcId=work.state.get(keys.VPC),
        TagSpecifications=tags.specification(EGRESS_ONLY_GATEWAY.type, work.desired.tags()),
    )
    gateway = answer["EgressOnlyInternetGateway"]
    remember(work, EGRESS_ONLY_GATEWAY, keys.EGRESS_ONLY_GATEWAY, gateway)


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the gateway."""
    return Step(
        name=DELETE,
        plan=lambda work: note(_to_delete(work)),
        ensure=_delete,
        after=after,
        skip=skip,
    )


async def _delete(work: Work) -> None:
    for name in _to_delete(work):
        await remove(work, "DeleteEgressOnlyInternetGateway", EgressOnlyInternetGatewayId=name)
        work.snapshot.egress_only_gateways.pop(name, None)
    forget(work, keys.EGRESS_ONLY_GATEWAY)


def _to_delete(work: Work) -> list[str]:
    gateways = work.snapshot.egress_only_gateways
    return gateways_to_delete(work, gateways, keys.EGRESS_ONLY_GATEWAY)
