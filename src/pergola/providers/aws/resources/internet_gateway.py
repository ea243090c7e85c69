"""The internet gateway: a managed one, or the one that an existing VPC must have."""

from functools import partial
from typing import Final

from pergola.cloud.errors import AlreadyExists, CloudError, DependencyProblem
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import (
    create_or_keep,
    described,
    known,
    refresh,
    tag_changes,
)
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.gateways import ExistingGateway, is_attached
from pergola.providers.aws.resources.kinds import INTERNET_GATEWAY
from pergola.providers.aws.resources.ours import Ours, attached_to_vpc, attached_vpcs, vpc_of
from pergola.providers.aws.resources.removal import deletion_step_of, one_of, remove
from pergola.providers.aws.resources.step import Step, Work, nothing
from pergola.providers.aws.resources.waiting import once_visible

DELETE: Final = "delete internet gateway"
_NOT_ATTACHED: Final = "Gateway.NotAttached"
_OURS: Final = Ours(kind=INTERNET_GATEWAY, key=keys.INTERNET_GATEWAY, accept=attached_to_vpc)
_EXISTING: Final = ExistingGateway(
    _OURS,
    "no attached internet gateway found for VPC {vpc}; attach one, or have no public zones",
)


def steps(desired: Desired) -> list[Step]:
    """Return the step for the gateway; an existing VPC without public zones needs none."""
    existing = desired.config.byo_vpc
    needed = desired.config.has_public_zone or not existing
    return [
        Step(
            name=names.INTERNET_GATEWAY,
            observe=nothing if existing else partial(refresh, ours=_OURS),
            decide=_EXISTING.decide if existing else _decide,
            after=(names.VPC,),
            skip=None if needed else "no zone has a public subnet",
        )
    ]


def _decide(work: Work) -> Decision:
    name = known(work, _OURS)
    if name and not is_attached(work.snapshot.internet_gateways[name], vpc_of(work)):
        attach, retag = partial(_attach, work, name), tag_changes(work, _OURS, name).values()
        return Decision.change(f"{name} is attached", attach, *retag, record={_OURS.key: name})
    return create_or_keep(work, _OURS, "attached to the VPC", "CreateInternetGateway")


async def _attach(work: Work, name: str) -> None:
    vpc = vpc_of(work)
    try:
        await once_visible(work, "AttachInternetGateway", InternetGatewayId=name, VpcId=vpc)
    except AlreadyExists:
        now = await described(work, INTERNET_GATEWAY, name)
        if now is None or not is_attached(now, vpc):
            raise
        return
    gateway = work.snapshot.internet_gateways[name]
    gateway["Attachments"] = [{"VpcId": vpc, "State": "attached"}]


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the gateway."""
    return deletion_step_of(DELETE, _OURS, delete=_delete, after=after, skip=skip)


async def _delete(work: Work, name: str) -> None:
    gateway = work.snapshot.internet_gateways.get(name)
    for vpc in [vpc_of(work)] if gateway is None else attached_vpcs(gateway):
        await _detach(work, name, vpc)
    await one_of(INTERNET_GATEWAY)(work, name)


async def _detach(work: Work, name: str, vpc: str) -> None:
    try:
        await remove(work, "DetachInternetGateway", InternetGatewayId=name, VpcId=vpc)
    except CloudError as error:
        if error.code != _NOT_ATTACHED or isinstance(error, DependencyProblem):
            raise
