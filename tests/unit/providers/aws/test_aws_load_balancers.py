"""The subnets of load balancers: spec 30 §8.3 and §8.4."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.providers.aws.config import InfrastructureConfig, Networks, Vpc, Zone
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC, Desired
from pergola.providers.aws.load_balancer_roles import (
    Role,
    ambiguities,
    in_zones,
    tagged,
    unfit,
)
from pergola.providers.aws.snapshot import Snapshot
from tests.support.aws.cloud_controller import chosen_subnets

CLUSTER = "kubernetes.io/cluster/shoot--p--s"
OTHER = "kubernetes.io/cluster/shoot--p--other"
VPC = "vpc-1"
ZONE = "eu-west-1a"


def desired(*zones: Zone) -> Desired:
    networks = Networks(vpc=Vpc(id=VPC), zones=list(zones) or [Zone(name=ZONE)])
    return Desired(
        technical_id="shoot--p--s",
        region="eu-west-1",
        config=InfrastructureConfig(networks=networks),
    )


def subnet(name: str, *tags: str, zone: str = ZONE, vpc: str = VPC, free: int = 100) -> JsonObject:
    return {
        "SubnetId": name,
        "VpcId": vpc,
        "AvailabilityZone": zone,
        "AvailableIpAddressCount": free,
        "Tags": [{"Key": tag, "Value": "1" if "role" in tag else "shared"} for tag in tags],
    }


def by_id(*subnets: JsonObject) -> dict[str, JsonObject]:
    return {each["SubnetId"]: each for each in subnets}


def snapshot(*subnets: JsonObject, open_: tuple[str, ...] = ()) -> Snapshot:
    """Return subnets, some of which have a route to the internet gateway in their own table."""
    main = {"RouteTableId": "rtb-main", "Associations": [{"Main": True}], "Routes": []}
    public = {
        "RouteTableId": "rtb-public",
        "Associations": [{"Main": False, "SubnetId": name} for name in open_],
        "Routes": [{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1"}],
    }
    tables = {"rtb-main": main, "rtb-public": public}
    return Snapshot(subnets=by_id(*subnets), route_tables=tables)


def test_a_subnet_counts_if_it_is_in_the_vpc_with_the_cluster_and_role_tags() -> None:
    subnets = by_id(
        subnet("subnet-2", CLUSTER, ROLE_PUBLIC),
        subnet("subnet-1", CLUSTER, ROLE_PUBLIC),
        subnet("subnet-3", CLUSTER),
        subnet("subnet-4", ROLE_PUBLIC),
        subnet("subnet-5", OTHER, ROLE_PUBLIC),
        subnet("subnet-6", CLUSTER, ROLE_PUBLIC, vpc="vpc-2"),
        subnet("subnet-7", CLUSTER, ROLE_PUBLIC, zone="eu-west-1b"),
    )

    assert tagged(desired(), Role.PUBLIC, subnets) == {
        ZONE: ["subnet-1", "subnet-2"],
        "eu-west-1b": ["subnet-7"],
    }


@pytest.mark.parametrize(
    ("zone", "subnets", "named"),
    [
        (Zone(name=ZONE), [subnet("subnet-1", CLUSTER, ROLE_PUBLIC)], ()),
        (
            Zone(name=ZONE, public_subnet_id="subnet-1"),
            [subnet("subnet-1", CLUSTER, ROLE_PUBLIC)],
            (),
        ),
        (
            Zone(name=ZONE),
            [
                subnet("subnet-1", CLUSTER, ROLE_PUBLIC),
                subnet("subnet-2", CLUSTER, ROLE_INTERNAL),
                subnet("subnet-3", CLUSTER, ROLE_PUBLIC, zone="eu-west-1b"),
            ],
            (),
        ),
        (
            Zone(name=ZONE),
            [subnet(name, CLUSTER, ROLE_PUBLIC) for name in ("subnet-1", "subnet-2")],
            ("eu-west-1a", "subnet-1 and subnet-2", "--resources subnet-2 "),
        ),
        (
            Zone(name=ZONE, public_subnet_id="subnet-2"),
            [subnet(name, CLUSTER, ROLE_PUBLIC) for name in ("subnet-1", "subnet-2")],
            ("publicSubnetID is subnet-2", "subnet-1 has", "--resources subnet-1 "),
        ),
        (
            Zone(name=ZONE, internal_subnet_id="subnet-2"),
            [subnet("subnet-1", CLUSTER, ROLE_INTERNAL)],
            ("internalSubnetID is subnet-2", "subnet-1 has", "--resources subnet-1 "),
        ),
        (
            Zone(name=ZONE),
            [
                subnet(name, CLUSTER, ROLE_INTERNAL, zone="eu-west-1f")
                for name in ("subnet-1", "subnet-2")
            ],
            ("eu-west-1f", "subnet-1 and subnet-2"),
        ),
    ],
)
def test_several_subnets_in_a_zone_are_reported_as_ambiguous_with_a_fix(
    zone: Zone, subnets: list[JsonObject], named: tuple[str, ...]
) -> None:
    found = list(ambiguities(desired(zone), by_id(*subnets)))

    assert len(found) == (1 if named else 0)
    assert all(part in found[0] for part in named)


def test_a_named_subnet_takes_precedence_over_a_tagged_one() -> None:
    cluster = desired(
        Zone(name="eu-west-1c", public_subnet_id="subnet-9"),
        Zone(name=ZONE),
        Zone(name="eu-west-1b"),
    )
    subnets = by_id(
        subnet("subnet-1", CLUSTER, ROLE_PUBLIC),
        subnet("subnet-2", CLUSTER, ROLE_PUBLIC, zone="eu-west-1f"),
    )

    assert list(in_zones(cluster, Role.PUBLIC, subnets)) == [
        ("eu-west-1c", "subnet-9"),
        (ZONE, "subnet-1"),
    ]


@pytest.mark.parametrize(
    ("subnets", "chosen"),
    [
        ([subnet("subnet-2"), subnet("subnet-1")], "subnet-1"),
        ([subnet("subnet-2", CLUSTER), subnet("subnet-1")], "subnet-2"),
        ([subnet("subnet-2", ROLE_INTERNAL), subnet("subnet-1", CLUSTER)], "subnet-2"),
        (
            [subnet("subnet-2", CLUSTER, ROLE_INTERNAL), subnet("subnet-1", ROLE_INTERNAL)],
            "subnet-2",
        ),
        (
            [subnet(name, CLUSTER, ROLE_INTERNAL) for name in ("subnet-2", "subnet-1")],
            "subnet-1",
        ),
        ([subnet("subnet-2"), subnet("subnet-1", OTHER, ROLE_INTERNAL)], "subnet-2"),
        ([subnet("subnet-2", OTHER, CLUSTER), subnet("subnet-1")], "subnet-2"),
        ([subnet("subnet-2"), subnet("subnet-1", CLUSTER, vpc="vpc-2")], "subnet-2"),
    ],
)
def test_the_cloud_controller_prefers_the_role_then_the_cluster_then_the_smaller_id(
    subnets: list[JsonObject], chosen: str
) -> None:
    assert chosen_subnets(desired(), Role.INTERNAL, snapshot(*subnets)) == {ZONE: chosen}


def test_public_load_balancers_are_placed_only_in_public_subnets() -> None:
    world = snapshot(
        subnet("subnet-1", CLUSTER, ROLE_PUBLIC),
        subnet("subnet-2", CLUSTER),
        subnet("subnet-3", CLUSTER, ROLE_PUBLIC, zone="eu-west-1b"),
        open_=("subnet-2",),
    )

    assert chosen_subnets(desired(), Role.PUBLIC, world) == {ZONE: "subnet-2"}


@pytest.mark.parametrize(
    ("role", "name", "reasons"),
    [
        (Role.PUBLIC, "subnet-open", []),
        (Role.INTERNAL, "subnet-closed", []),
        (Role.PUBLIC, "subnet-closed", ["it has no route to an internet gateway"]),
        (Role.INTERNAL, "subnet-open", ["it has a route to an internet gateway"]),
        (Role.INTERNAL, "subnet-full", ["it has 7 free addresses, and 8 are needed"]),
        (Role.INTERNAL, "subnet-other", ["it has only the tag of another cluster"]),
    ],
)
def test_an_unsuitable_subnet_has_a_reason(role: Role, name: str, reasons: list[str]) -> None:
    world = snapshot(
        subnet("subnet-open", CLUSTER),
        subnet("subnet-closed", CLUSTER, free=8),
        subnet("subnet-full", CLUSTER, free=7),
        subnet("subnet-other", OTHER),
        open_=("subnet-open",),
    )

    assert list(unfit(desired(), role, world, name)) == reasons


TAGS = st.lists(st.sampled_from([CLUSTER, OTHER, ROLE_PUBLIC, ROLE_INTERNAL]), unique=True)
SUBNETS = st.lists(
    st.builds(
        lambda number, tags, zone: subnet(f"subnet-{number}", *tags, zone=zone),
        st.integers(0, 20),
        TAGS,
        st.sampled_from([ZONE, "eu-west-1b"]),
    ),
    unique_by=lambda each: each["SubnetId"],
)


@given(SUBNETS)
def test_the_status_and_the_cloud_controller_agree_unless_subnets_are_ambiguous(
    subnets: list[JsonObject],
) -> None:
    cluster = desired(Zone(name=ZONE), Zone(name="eu-west-1b"))
    if any(ambiguities(cluster, by_id(*subnets))):
        return
    placed = chosen_subnets(cluster, Role.INTERNAL, snapshot(*subnets))

    for zone, name in in_zones(cluster, Role.INTERNAL, by_id(*subnets)):
        assert placed[zone] == name
