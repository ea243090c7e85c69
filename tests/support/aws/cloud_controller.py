"""The choice of AWS's cloud controller between subnets, for comparison with ours."""

from collections import defaultdict
from collections.abc import Iterator

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.providers.aws import routing
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.load_balancer_roles import Role, is_of_others
from pergola.providers.aws.snapshot import Snapshot


def chosen_subnets(desired: Desired, role: Role, snapshot: Snapshot) -> dict[str, str]:
    """Return the subnet that the cloud controller chooses in each zone (spec 30 §8.3)."""
    subnets = snapshot.subnets
    by_zone: dict[str, list[str]] = defaultdict(list)
    for name in _candidates(desired, role, snapshot):
        by_zone[str(subnets[name].get("AvailabilityZone"))].append(name)
    return {
        zone: min(several, key=lambda name: _rank(desired, role, subnets[name]))
        for zone, several in by_zone.items()
    }


def _candidates(desired: Desired, role: Role, snapshot: Snapshot) -> Iterator[str]:
    """Yield internet-facing subnets for public load balancers, and all for internal ones."""
    for name, subnet in snapshot.subnets.items():
        if subnet.get("VpcId") != desired.config.networks.vpc.id or is_of_others(desired, subnet):
            continue
        if role is Role.INTERNAL or routing.reaches_internet(snapshot, name):
            yield name


def _rank(desired: Desired, role: Role, subnet: JsonObject) -> tuple[bool, bool, str]:
    """Return what decides: the role, then the cluster's tag, then the smaller id."""
    tags = tags_of(subnet)
    return role.tag not in tags, desired.cluster_tag not in tags, str(subnet["SubnetId"])
