"""The source addresses of nodes' requests: those of the NAT gateways (spec 30 §1.2)."""

from pergola.cloud.aws.network import tags_of
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.nat_gateways.facts import public_ips_of
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work


def steps(desired: Desired) -> list[Step]:
    """Return the step that records them, including user-provided gateways with our tag."""
    del desired
    return [
        Step(
            name=names.EGRESS_RANGES,
            decide=_decide,
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


def _decide(work: Work) -> Decision:
    ranges = ",".join(egress_ranges(work))
    record = {keys.EGRESS_CIDRS: ranges}
    if ranges == (work.state.get(keys.EGRESS_CIDRS) or ""):
        return Decision.keep(ranges, record)
    return Decision.change(ranges or "none", record=record)
