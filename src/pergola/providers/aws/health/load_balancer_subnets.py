"""The condition that load balancers find a subnet in every zone (spec 30 §8.4, Beyond 10). Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from pergola.cloud.aws.network import tags_of
from pergola.providers.aws.desired import SHARED, Desired
from pergola.providers.aws.health.condition import ConditionUpdate
from pergola.providers.aws.load_balancer_roles import HAS_ROLE, LEAST_FREE, Role, in_zones
from pergola.providers.aws.resources.tags import advice
from pergola.providers.aws.snapshot import Snapshot

LOAD_BALANCER_SUBNETS_AVAILABLE: Final = "LoadBalancerSubnetsAvailable"
SUBNETS_FOUND: Final = "SubnetsFound"
SUBNETS_MISSING: Final = "SubnetsMissing"


def load_balancer_subnets_available(desired: Desired, snapshot: Snapshot) -> ConditionUpdate:
    """Decide whether load balancers find a subnet with free addresses in every zone."""
    zones = [zone.name for zone in desired.config.networks.zones]
    found = {role: dict(in_zones(desired, role, snapshot.subnets)) for role in Role}
    if not any(found.values()):
        text = (
            f"no subnet in {', '.join(zones)} is for load balancers: Services of type LoadBalancer "
            f"stay pending; name subnets in the configuration, or tag them with "
            f"{desired.cluster_tag} and {Role.PUBLIC.tag}=1 or {Role.INTERNAL.tag}=1"
        )
        return ConditionUpdate("False", SUBNETS_MISSING, text)
    problems = [
        problem
        for role, covered in found.items()
        if covered
        for problem in (
            *_uncovered(role, zones, covered),
            *_not_found(desired, role, covered, snapshot),
            *_full(role, covered, snapshot),
        )
    ]
    if problems:
        return ConditionUpdate("False", SUBNETS_MISSING, "; ".join(problems))
    texts = [f"{role} load balancers: {_placed(covered)}" for role, covered in found.items()]
    return ConditionUpdate("True", SUBNETS_FOUND, "; ".join(texts))


def _uncovered(role: Role, zones: Iterable[str], covered: dict[str, str]) -> Iterator[str]:
    lacking = [zone for zone in zones if zone not in covered]
    if lacking:
        yield (
            f"{', '.join(lacking)} without a subnet for {role} load balancers, "
            f"{', '.join(covered)} with one: tag one with {role.tag}=1 and the cluster's tag"
        )


def _not_found(
    desired: Desired, role: Role, covered: dict[str, str], snapshot: Snapshot
) -> Iterator[str]:
    """Describe named subnets that the cloud controller does not find: it looks at tags only."""
    tags = {desired.cluster_tag: SHARED, role.tag: HAS_ROLE}
    lacking: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in covered.values():
        subnet = snapshot.subnets.get(name)
        if subnet is None:
            yield f"subnet {name} for {role} load balancers is not in the VPC any more"
        elif missing := tuple(key for key in tags if key not in tags_of(subnet)):
            lacking[missing].append(name)
    for keys, several in lacking.items():
        command = advice(desired.region, several, {key: tags[key] for key in keys})
        yield (
            f"subnet {', '.join(several)} for {role} load balancers has no tag {', '.join(keys)}, "
            f"so that the cloud controller does not find it: {command}"
        )


def _full(role: Role, covered: dict[str, str], snapshot: Snapshot) -> Iterator[str]:
    for name in covered.values():
        free = snapshot.subnets.get(name, {}).get("AvailableIpAddressCount", LEAST_FREE)
        if free < LEAST_FREE:
            yield (
                f"subnet {name} for {role} load balancers has {free} addresses left, and "
                f"{LEAST_FREE} are needed"
            )


def _placed(covered: dict[str, str]) -> str:
    return ", ".join(f"{name} in {zone}" for zone, name in covered.items()) or "none"
