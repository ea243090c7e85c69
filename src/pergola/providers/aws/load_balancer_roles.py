"""Subnets of load balancers (spec 30 §8).

Two parties must choose the same subnets: the cloud controller, which picks one subnet per zone by
tags while the cluster runs, and we, who report subnets in the status. If tags leave a choice, the
cloud controller silently takes the smallest id; here that is an error.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.providers.aws import routing
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC, Desired
from pergola.providers.aws.snapshot import Snapshot

CLUSTER_PREFIX: Final = "kubernetes.io/cluster/"
LEAST_FREE: Final = 8
"""The number of free addresses that a load balancer needs in each of its subnets."""
HAS_ROLE: Final = "1"


class Role(StrEnum):
    """The load balancers that a subnet is for."""

    PUBLIC = "public"
    INTERNAL = "internal"

    @property
    def tag(self) -> str:
        """The key of the role tag."""
        return ROLE_PUBLIC if self is Role.PUBLIC else ROLE_INTERNAL

    def named_by(self, zone: Zone) -> str | None:
        """Return the subnet that the config names for the role in a zone."""
        return zone.public_subnet_id if self is Role.PUBLIC else zone.internal_subnet_id


def tagged(desired: Desired, role: Role, subnets: Mapping[str, JsonObject]) -> dict[str, list[str]]:
    """Return subnets with the cluster's tag and a role, sorted, by availability zone."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(subnets):
        subnet = subnets[name]
        tags = tags_of(subnet)
        if (
            subnet.get("VpcId") == desired.config.networks.vpc.id
            and desired.cluster_tag in tags
            and tags.get(role.tag) == HAS_ROLE
        ):
            found[str(subnet.get("AvailabilityZone"))].append(name)
    return dict(found)


def ambiguities(desired: Desired, subnets: Mapping[str, JsonObject]) -> Iterator[str]:
    """Yield a sentence for each zone where tags allow several subnets (§8.4).

    Args:
        subnets: with the tags that they will have; `steps.byo.tagging.with_tags` adds them.
    """
    for role in Role:
        named = {zone.name: role.named_by(zone) for zone in desired.config.networks.zones}
        for zone, several in tagged(desired, role, subnets).items():
            explicit = named.get(zone)
            if explicit and several != [explicit]:
                yield _other_than_named(desired, role, zone, explicit, several)
            elif len(several) > 1:
                yield _several(desired, role, zone, several)


def in_zones(
    desired: Desired, role: Role, subnets: Mapping[str, JsonObject]
) -> Iterator[tuple[str, str]]:
    """Yield the cluster's zones with the subnet for a role: named, else tagged.

    Nothing may be ambiguous.
    """
    found = tagged(desired, role, subnets)
    for zone in desired.config.networks.zones:
        subnet = role.named_by(zone) or next(iter(found.get(zone.name, ())), None)
        if subnet:
            yield zone.name, subnet


def unfit(desired: Desired, role: Role, snapshot: Snapshot, name: str) -> Iterator[str]:
    """Yield why load balancers in a subnet would fail, or not be created; one clause each."""
    subnet = snapshot.subnets[name]
    is_open = routing.reaches_internet(snapshot, name)
    if role is Role.PUBLIC and not is_open:
        yield "it has no route to an internet gateway"
    if role is Role.INTERNAL and is_open:
        yield "it has a route to an internet gateway"
    free = subnet.get("AvailableIpAddressCount")
    if isinstance(free, int) and free < LEAST_FREE:
        yield f"it has {free} free addresses, and {LEAST_FREE} are needed"
    if is_of_others(desired, subnet):
        yield "it has only the tag of another cluster"


def is_of_others(desired: Desired, subnet: JsonObject) -> bool:
    """Return whether a subnet has the tag of another cluster only."""
    tags = tags_of(subnet)
    return desired.cluster_tag not in tags and any(key.startswith(CLUSTER_PREFIX) for key in tags)


def _other_than_named(
    desired: Desired, role: Role, zone: str, explicit: str, several: Sequence[str]
) -> str:
    others = [name for name in several if name != explicit]
    return (
        f"zone {zone}: {role}SubnetID is {explicit}, but {_listed(others)} "
        f"{_has(others)} the tags {desired.cluster_tag} and {role.tag}={HAS_ROLE} as well, so that "
        f"load balancers may be placed there; {_remedy(desired, others)}"
    )


def _several(desired: Desired, role: Role, zone: str, several: Sequence[str]) -> str:
    return (
        f"zone {zone}: {_listed(several)} all have the tags {desired.cluster_tag} and "
        f"{role.tag}={HAS_ROLE}, and a load balancer gets only one subnet in each zone; keep "
        f"the tag on one of them: {_remedy(desired, several[1:])}"
    )


def _remedy(desired: Desired, names: Sequence[str]) -> str:
    return (
        f"aws ec2 delete-tags --region {desired.region} --resources {' '.join(names)} "
        f"--tags Key={desired.cluster_tag}"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
