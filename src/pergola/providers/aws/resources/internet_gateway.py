"""The internet gateway: a managed one, or the one that an existing VPC must have."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, CloudError, DependencyProblem
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create, described, find, foreseen, known
from pergola.providers.aws.resources.gateways import ExistingGateway, is_attached
from pergola.providers.aws.resources.kinds import INTERNET_GATEWAY
from pergola.providers.aws.resources.ours import Ours, attached_to_vpc, attached_vpcs, vpc_of
from pergola.providers.aws.resources.removal import delete_ours, one_of, remove
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible

DELETE: Final = "delete internet gateway"
_NOT_ATTACHED: Final = "Gateway.NotAttached"
_OURS: Final = Ours(kind=INTERNET_GATEWAY, key=keys.INTERNET_GATEWAY, accept=attached_to_vpc)
_EXISTING: Final = ExistingGateway(
    keys.INTERNET_GATEWAY,
    lambda work: work.snapshot.internet_gateways,
    "no attached internet gateway found for VPC {vpc}; attach one, or have no public zones",
)


def steps(desired: Desired) -> list[Step]:
    """Return the step for the gateway; an existing VPC without public zones needs none."""
    config = desired.config
    skip = "no zone has a public subnet" if not config.has_public_zone else None
    if config.byo_vpc:
        step = Step(
            name=names.INTERNET_GATEWAY,
            plan=_EXISTING.plan,
            ensure=_EXISTING.ensure,
            after=(names.VPC,),
            skip=skip,
        )
    else:
        step = Step(name=names.INTERNET_GATEWAY, plan=_plan, ensure=_ensure, after=(names.VPC,))
    return [step]


def _plan(work: Work) -> Note:
    name = known(work, _OURS)
    if name and not is_attached(work.snapshot.internet_gateways[name], vpc_of(work)):
        return Note(Fate.CHANGE, f"{name} is attached")
    return foreseen(work, _OURS, new="attached to the VPC")


async def _ensure(work: Work) -> None:
    gateway = await find(work, _OURS) or await create(work, _OURS, "CreateInternetGateway")
    if not is_attached(gateway, vpc_of(work)):
        await _attach(work, gateway, vpc_of(work))


async def _attach(work: Work, gateway: JsonObject, vpc: str | None) -> None:
    name = gateway["InternetGatewayId"]
    try:
        await once_visible(work, "AttachInternetGateway", InternetGatewayId=name, VpcId=vpc)
    except AlreadyExists:
        now = await described(work, INTERNET_GATEWAY, name)
        if now is None or not is_attached(now, vpc):
            raise
        return
    gateway["Attachments"] = [{"VpcId": vpc, "State": "attached"}]


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the gateway."""
    return delete_ours(DELETE, _OURS, delete=_delete, after=after, skip=skip)


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
