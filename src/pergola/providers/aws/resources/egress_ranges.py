"""The source addresses of nodes' requests: those of the NAT gateways (spec 30 §1.2)."""

from pergola.cloud.aws.network import tags_of
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.nat_gateways.facts import public_ips_of
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work


def steps(desired: Desired) -> list[Step]:
    """Return the step that records them, including user-provided gateways with our tag."""
    del desired
    return [
        Step(
            name=names.EGRESS_RANGES,
            plan=_plan,
            ensure=_ensure,
            after=(names.VPC, names.NAT_GATEWAYS),
            timeout=LONG_TIMEOUT,
        )
    ]


def egress_ranges(work: Work) -> list[str]:
    """Return the addresses of available NAT gateways with the cluster's tag, sorted, as CIDRs."""
    vpc = work.state.get(keys.VPC)
    addresses = {
        address
        for gateway in work.snapshot.nat_gateways.values()
        if gateway.get("State") == "available"
        and gateway.get("VpcId") == vpc
        and work.desired.cluster_tag in tags_of(gateway)
        for address in public_ips_of(gateway)
    }
    return sorted(f"{address}/32" for address in addresses)


def _plan(work: Work) -> Note:
    ranges = ",".join(egress_ranges(work))
    if ranges == (work.state.get(keys.EGRESS_CIDRS) or ""):
        return Note(Fate.KEEP, ranges)
    return Note(Fate.CHANGE, ranges or "none")


async def _ensure(work: Work) -> None:
    work.state.set(keys.EGRESS_CIDRS, ",".join(egress_ranges(work)))
