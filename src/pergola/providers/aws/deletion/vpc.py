"""Removes the VPC that was created, and its DHCP options (spec 30 §9.1)."""

from typing import Final

from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import condemned, forget, named, note, remove
from pergola.providers.aws.step import Step, Work

DEFAULT_SECURITY_GROUP: Final = "forget default security group"
VPC: Final = "delete VPC"
DHCP_OPTIONS: Final = "delete DHCP options"


def default_security_group(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the group that AWS makes and deletes with its VPC."""
    return Step(
        name=DEFAULT_SECURITY_GROUP,
        plan=lambda _: Note(Fate.KEEP, "it goes with its VPC"),
        ensure=_forget_default_group,
        after=after,
        skip=skip,
    )


def vpc(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the VPC."""
    return Step(name=VPC, plan=_plan_vpc, ensure=_remove_vpc, after=after, skip=skip)


def dhcp_options(after: tuple[str, ...], skip: str | None) -> Step:
    """The step of the DHCP options."""
    return Step(
        name=DHCP_OPTIONS,
        plan=lambda work: note(_options(work)),
        ensure=_remove_options,
        after=after,
        skip=skip,
    )


async def _forget_default_group(work: Work) -> None:
    forget(work, keys.DEFAULT_SECURITY_GROUP)


def _plan_vpc(work: Work) -> Note:
    return note(_vpcs(work))


async def _remove_vpc(work: Work) -> None:
    for name in _vpcs(work):
        await remove(work, "DeleteVpc", VpcId=name)
        work.snapshot.vpc = None
    forget(work, keys.VPC, keys.VPC_IPV6_BLOCK, keys.SERVICE_CIDR, keys.EGRESS_CIDRS)


def _vpcs(work: Work) -> list[str]:
    """The VPC of the state, or one with this cluster's tags."""
    found = work.snapshot.vpc
    things = {} if found is None else {str(found["VpcId"]): found}
    return condemned(work, things, (work.state.get(keys.VPC),), named(work))


async def _remove_options(work: Work) -> None:
    for name in _options(work):
        await remove(work, "DeleteDhcpOptions", DhcpOptionsId=name)
        work.snapshot.dhcp_options.pop(name, None)
    forget(work, keys.DHCP_OPTIONS)


def _options(work: Work) -> list[str]:
    known = work.state.get(keys.DHCP_OPTIONS)
    return condemned(work, work.snapshot.dhcp_options, (known,), named(work))
