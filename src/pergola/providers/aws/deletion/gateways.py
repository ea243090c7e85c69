"""Removes the gateways of a VPC that was created (spec 30 §9.1)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import CloudError, DependencyProblem
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import (
    condemned,
    forget,
    named,
    note,
    remove,
    vpc_of,
)
from pergola.providers.aws.step import Step, Work

INTERNET_GATEWAY: Final = "delete internet gateway"
EGRESS_ONLY_GATEWAY: Final = "delete egress-only internet gateway"
_NOT_ATTACHED: Final = "Gateway.NotAttached"


def internet_gateway(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the internet gateway."""
    return Step(
        name=INTERNET_GATEWAY,
        plan=lambda work: note(_internet(work)),
        ensure=_remove_internet,
        after=after,
        skip=skip,
    )


def egress_only_gateway(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the egress-only internet gateway."""
    return Step(
        name=EGRESS_ONLY_GATEWAY,
        plan=_plan_egress_only,
        ensure=_remove_egress_only,
        after=after,
        skip=skip,
    )


async def _remove_internet(work: Work) -> None:
    for name in _internet(work):
        gateway = work.snapshot.internet_gateways.get(name)
        for vpc in _vpcs(gateway) if gateway is not None else [vpc_of(work)]:
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


def _internet(work: Work) -> list[str]:
    has_name = named(work)
    vpc = vpc_of(work)

    def is_it(gateway: JsonObject) -> bool:
        return has_name(gateway) and set(_vpcs(gateway)) <= {vpc}

    known = work.state.get(keys.INTERNET_GATEWAY)
    return condemned(work, work.snapshot.internet_gateways, (known,), is_it)


def _plan_egress_only(work: Work) -> Note:
    return note(_egress_only(work))


async def _remove_egress_only(work: Work) -> None:
    for name in _egress_only(work):
        await remove(work, "DeleteEgressOnlyInternetGateway", EgressOnlyInternetGatewayId=name)
        work.snapshot.egress_only_gateways.pop(name, None)
    forget(work, keys.EGRESS_ONLY_GATEWAY)


def _egress_only(work: Work) -> list[str]:
    has_name = named(work)
    vpc = vpc_of(work)

    def is_it(gateway: JsonObject) -> bool:
        return has_name(gateway) and set(_vpcs(gateway)) <= {vpc}

    known = work.state.get(keys.EGRESS_ONLY_GATEWAY)
    return condemned(work, work.snapshot.egress_only_gateways, (known,), is_it)


def _vpcs(gateway: JsonObject) -> list[str]:
    """The VPCs to which a gateway is attached: one at most."""
    return [str(each.get("VpcId", "")) for each in gateway.get("Attachments") or ()]
