"""The network of a zone: subnets, NAT with its elastic IP, route table (spec 30 §3.5)."""

from pergola.providers.aws.config import Zone
from pergola.providers.aws.step import Step
from pergola.providers.aws.steps.zones import addresses, associations, nat, route_table, subnets
from pergola.providers.aws.wanted import Wanted


def zone_steps(wanted: Wanted, zone: Zone) -> list[Step]:
    """All steps of one zone, in an order in which they could run."""
    rooms = (subnets, addresses, nat, route_table, associations)
    return [step for room in rooms for step in room.steps(wanted, zone)]
