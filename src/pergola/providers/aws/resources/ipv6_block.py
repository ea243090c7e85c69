"""The VPC's IPv6 block: associated with a managed VPC that has none, and awaited (§10.5)."""

from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import described
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import VPC
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.vpc import ipv6_options
from pergola.providers.aws.resources.waiting import once_visible, wait_until

_ASSOCIATED: Final = "associated"
_COMING: Final = frozenset({"associating", _ASSOCIATED})


def steps(desired: Desired) -> list[Step]:
    """Return the step that records the IPv6 block; skipped without IPv6."""
    skip = None if desired.needs_ipv6_block else "the cluster has no IPv6"
    return [
        Step(
            name=names.IPV6_BLOCK,
            observe=_observe,
            decide=_decide,
            after=(names.VPC,),
            skip=skip,
        )
    ]


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


async def _observe(work: Work) -> None:
    if _blocks(work.snapshot.vpc, _COMING) and block_of(work) is None:
        await wait_until(work, lambda: _associated(work))


def _decide(work: Work) -> Decision:
    block, vpc = block_of(work), work.state.get(keys.VPC)
    if block:
        return Decision.keep(block, {keys.VPC_IPV6_BLOCK: block})
    if work.desired.config.byo_vpc:
        text = f"VPC {vpc} has no IPv6 block, which the cluster needs; associate one"
        return Decision.refuse(ExtensionError(text, Code.CONFIGURATION_PROBLEM))
    return Decision.creation("a /56 for the VPC", partial(_associate, work, vpc))


async def _associate(work: Work, vpc: str | None) -> None:
    """Associate a block with a VPC that was created before the cluster got IPv6."""
    await once_visible(work, "AssociateVpcCidrBlock", VpcId=vpc, **ipv6_options(work.desired))
    await wait_until(work, lambda: _associated(work))


async def _associated(work: Work) -> str | None:
    await described(work, VPC, work.state.get(keys.VPC) or "")
    return block_of(work)
