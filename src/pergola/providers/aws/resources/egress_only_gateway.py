"""The egress-only internet gateway, through which nodes reach the internet over IPv6."""

from functools import partial
from typing import Final

from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create_or_keep, refresh
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.gateways import ExistingGateway
from pergola.providers.aws.resources.kinds import EGRESS_ONLY_GATEWAY
from pergola.providers.aws.resources.ours import Ours, attached_to_vpc, vpc_of
from pergola.providers.aws.resources.removal import deletion_step_of
from pergola.providers.aws.resources.step import Step, Work, nothing

DELETE: Final = "delete egress-only internet gateway"
_OURS: Final = Ours(kind=EGRESS_ONLY_GATEWAY, key=keys.EGRESS_ONLY_GATEWAY, accept=attached_to_vpc)
_EXISTING: Final = ExistingGateway(
    _OURS,
    "no egress-only internet gateway found for VPC {vpc}, which a cluster with IPv6 needs; "
    "create one",
)


def steps(desired: Desired) -> list[Step]:
    """Return the step for the gateway; skipped for user-provided subnets."""
    existing = desired.config.byo_vpc
    return [
        Step(
            name=names.EGRESS_ONLY_GATEWAY,
            observe=nothing if existing else partial(refresh, ours=_OURS),
            decide=_EXISTING.decide if existing else _decide,
            after=(names.VPC,),
            skip=_skip(desired),
        )
    ]


def _skip(desired: Desired) -> str | None:
    if not desired.ipv6:
        return "the cluster has no IPv6"
    return "the subnets are user-provided" if desired.config.byo_subnets else None


def _decide(work: Work) -> Decision:
    new, operation = "attached to the VPC", "CreateEgressOnlyInternetGateway"
    return create_or_keep(work, _OURS, new, operation, VpcId=vpc_of(work))


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the gateway."""
    return deletion_step_of(DELETE, _OURS, after=after, skip=skip)
