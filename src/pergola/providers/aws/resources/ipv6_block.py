"""The VPC's IPv6 block: associated with a managed VPC that has none, and awaited (§10.5)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import described
from pergola.providers.aws.resources.kinds import VPC
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.vpc import ipv6_options
from pergola.providers.aws.resources.waiting import once_visible, wait_until

_ASSOCIATED: Final = "associated"
_COMING: Final = frozenset({"associating", _ASSOCIATED})


def steps(desired: Desired) -> list[Step]:
    """Return the step that records the IPv6 block; skipped without IPv6."""
    skip = None if desired.needs_ipv6_block else "the cluster has no IPv6"
    step = Step(name=names.IPV6_BLOCK, plan=_plan, ensure=_ensure, after=(names.VPC,), skip=skip)
    return [step]


def block_of(work: Work) -> str | None:
    """Return the IPv6 block that is associated with the VPC.

    If a user's VPC has several, the one in the state is kept: AWS lists them in any order.
    """
    blocks = [each["Ipv6CidrBlock"] for each in _blocks(work.snapshot.vpc, {_ASSOCIATED})]
    known = work.state.get(keys.VPC_IPV6_BLOCK)
    return known if known in blocks else next(iter(blocks), None)


def _blocks(vpc: JsonObject | None, states: frozenset[str] | set[str]) -> list[JsonObject]:
    blocks: list[JsonObject] = (vpc or {}).get("Ipv6CidrBlockAssociationSet") or []
    return [each for each in blocks if each["Ipv6CidrBlockState"]["State"] in states]


def _plan(work: Work) -> Note:
    block = block_of(work)
    if block:
        return Note(Fate.KEEP, block)
    return Note(Fate.CREATE, "a /56 for the VPC")


async def _ensure(work: Work) -> None:
    if not _blocks(work.snapshot.vpc, _COMING):
        await _associate(work)
    block = block_of(work)
    if block is None:
        block = await wait_until(work, lambda: _associated(work))
    work.state.set(keys.VPC_IPV6_BLOCK, block)


async def _associate(work: Work) -> None:
    """Associate a block with a VPC that was created before the cluster got IPv6."""
    vpc = work.state.get(keys.VPC)
    if work.desired.config.byo_vpc:
        raise ExtensionError(
            f"VPC {vpc} has no IPv6 block, which the cluster needs; associate one",
            Code.CONFIGURATION_PROBLEM,
        )
    await once_visible(work, "AssociateVpcCidrBlock", VpcId=vpc, **ipv6_options(work.desired))


async def _associated(work: Work) -> str | None:
    await described(work, VPC, work.state.get(keys.VPC) or "")
    return block_of(work)
