"""The internet gateway: a managed one, or the one that an existing VPC must have."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, CloudError, DependencyProblem
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import (
    attached_to_vpc,
    described,
    find,
    foreseen,
    known,
    remember,
)
from pergola.providers.aws.resources.gateways import (
    ExistingGateway,
    attached_vpcs,
    gateways_to_delete,
    is_attached,
)
from pergola.providers.aws.resources.kinds import INTERNET_GATEWAY
from pergola.providers.aws.resources.removal import forget, note, remove, vpc_of
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.waiting import once_visible

DELETE: Final = "delete internet gateway"
_NOT_ATTACHED: Final = "Gateway.NotAttached"
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
    vpc = work.state.get(keys.VPC)
    accept = attached_to_vpc(work)
    name = known(work, INTERNET_GATEWAY, keys.INTERNET_GATEWAY, accept)
    if name and not is_attached(work.snapshot.internet_gateways[name], vpc):
        return Note(Fate.CHANGE, f"{name} is attached")
    return foreseen(
        work, INTERNET_GATEWAY, keys.INTERNET_GATEWAY, accept, new="attached to the VPC"
    )


async def _ensure(work: Work) -> None:
    accept = attached_to_vpc(work)
    gateway = await find(work, INTERNET_GATEWAY, keys.INTERNET_GATEWAY, accept)
    if gateway is None:
        gateway = await _create(work)
    vpc = work.state.get(keys.VPC)
    if not is_attached(gateway, vpc):
        await _attach(work, gateway, vpc)


async def _create(work: Work) -> JsonObject:
    answer = await work.aws.call(
        "ec2",
        "CreateInternetGateway",
        TagSpecifications=tags.specification(INTERNET_GATEWAY.type, work.desired.tags()),
    )
    gateway: JsonObject = answer["InternetGateway"]
    remember(work, INTERNET_GATEWAY, keys.INTERNET_GATEWAY, gateway)
    return gateway


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
    return Step(
        name=DELETE,
        plan=lambda work: note(_to_delete(work)),
        ensure=_delete,
        after=after,
        skip=skip,
    )


async def _delete(work: Work) -> None:
    for name in _to_delete(work):
        gateway = work.snapshot.internet_gateways.get(name)
        for vpc in attached_vpcs(gateway) if gateway is not None else [vpc_of(work)]:
            await _detach(work, name, vpc)
        await remove(work, "DeleteInternetGateway", InternetGatewayId=name)
        work.snapshot.internet_gateways.pop(name, None)
    forget(work, keys.INTERNET_GATEWAY)


async def _detach(work: Work, name: str, vpc: str) -> None:
    try:
        await remove(work, "DetachInternetGateway", InternetGatewayId=name, VpcId=vpc)
    except CloudError as error:
        if error.code != _NOT_ATTACHED or isinstance(error, DependencyProblem):
            raise


def _to_delete(work: Work) -> list[str]:
    return gateways_to_delete(work, work.snapshot.internet_gateways, keys.INTERNET_GATEWAY)
