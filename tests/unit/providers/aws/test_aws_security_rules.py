"""The rules of the nodes' security group: spec 30 §6.1, §6.5."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.flow import State
from pergola.providers.aws.config import (
    DualStack,
    ElasticFileSystem,
    InfrastructureConfig,
    Networks,
    Vpc,
    Zone,
)
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.security_group.desired import (
    Ranges,
    bastion_groups,
    desired_rules,
    zone_ranges,
)
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    FIELDS,
    INGRESS,
    NFS,
    NODE_PORTS,
    TCP,
    UDP,
    Direction,
    Rule,
    compare,
    permissions,
    rules_of,
)
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.status import nodes_security_group

GROUP = "sg-0a"
TID = "shoot--p--s"
BLOCK = "2001:db8:1234:1a00::/56"
PAIRS = [
    Rule(INGRESS, ALL, None, GROUP),
    Rule(INGRESS, TCP, NODE_PORTS, EVERYWHERE),
    Rule(INGRESS, UDP, NODE_PORTS, EVERYWHERE),
    Rule(EGRESS, ALL, None, EVERYWHERE),
]
PAIRS_6 = [rule._replace(peer=EVERYWHERE_6) if rule.peer == EVERYWHERE else rule for rule in PAIRS]


def desired(
    *zones: Zone,
    families: tuple[str, ...] = ("IPv4",),
    efs: bool = False,
    efa: bool = False,
    own: str | None = None,
) -> Desired:
    networks = Networks(
        vpc=Vpc(id="vpc-1"),
        zones=list(zones),
        nodes_security_group_id=own,
    )
    config = InfrastructureConfig(
        networks=networks, elastic_file_system=ElasticFileSystem(enabled=efs)
    )
    return Desired(
        technical_id=TID, region="eu-west-1", config=config, families=families, uses_efa=efa
    )


@pytest.mark.parametrize(
    ("families", "rules"),
    [
        (("IPv4",), PAIRS),
        (("IPv6",), PAIRS_6),
        (("IPv4", "IPv6"), [*PAIRS, *PAIRS_6]),
    ],
)
def test_every_group_has_the_basic_rules(families: tuple[str, ...], rules: list[Rule]) -> None:
    assert desired_rules(desired(families=families), GROUP, []) == set(rules)


def test_an_efa_interface_needs_traffic_to_the_group_itself() -> None:
    found = desired_rules(desired(efa=True), GROUP, [])

    assert found - set(PAIRS) == {Rule(EGRESS, ALL, None, GROUP)}


def test_the_subnets_of_load_balancers_may_reach_node_ports() -> None:
    ranges = Ranges(("10.0.0.0/24",), ("10.0.1.0/24",), ("10.0.2.0/24",))

    found = desired_rules(desired(), GROUP, [ranges])

    assert found - set(PAIRS) == {
        Rule(INGRESS, protocol, NODE_PORTS, peer)
        for protocol in (TCP, UDP)
        for peer in ("10.0.1.0/24", "10.0.2.0/24")
    }


def test_worker_subnets_may_reach_the_file_system() -> None:
    found = desired_rules(desired(efs=True), GROUP, [Ranges(workers=("10.0.0.0/24",))])

    assert found - set(PAIRS) == {Rule(INGRESS, TCP, NFS, "10.0.0.0/24")}


ZONES = (
    Zone(name="a", workers="10.0.0.0/24", internal="10.0.1.0/24", public="10.0.2.0/24"),
    Zone(name="b", workers="10.0.3.0/24", internal="10.0.4.0/24"),
)


def test_ranges_of_created_subnets_come_from_the_config() -> None:
    assert zone_ranges(desired(*ZONES), State(), Snapshot()) == [
        Ranges(("10.0.0.0/24",), ("10.0.1.0/24",), ("10.0.2.0/24",)),
        Ranges(("10.0.3.0/24",), ("10.0.4.0/24",), ()),
    ]


def test_ipv6_ranges_are_computed_from_the_block_of_the_vpc() -> None:
    state = State({"VPCIPv6CidrBlock": BLOCK})

    found = zone_ranges(desired(*ZONES, families=("IPv4", "IPv6")), state, Snapshot())

    assert found[0].workers == ("10.0.0.0/24", "2001:db8:1234:1a00::/64")
    assert found[0].internal == ("10.0.1.0/24", "2001:db8:1234:1a01::/64")
    assert found[0].public == ("10.0.2.0/24", "2001:db8:1234:1a02::/64")
    assert found[1].internal == ("10.0.4.0/24", "2001:db8:1234:1a04::/64")
    assert found[1].public == ()


def test_an_existing_subnet_provides_its_own_range() -> None:
    state = State({"VPCIPv6CidrBlock": BLOCK, "Zones/a/SubnetPrivateUtility": "subnet-1"})
    block = {
        "Ipv6CidrBlock": "2001:db8:1234:1a77::/64",
        "Ipv6CidrBlockState": {"State": "associated"},
    }
    snapshot = Snapshot(subnets={"subnet-1": {"Ipv6CidrBlockAssociationSet": [block]}})

    found = zone_ranges(desired(*ZONES, families=("IPv4", "IPv6")), state, snapshot)

    assert found[0].internal == ("10.0.1.0/24", "2001:db8:1234:1a77::/64")


def test_nodes_with_only_ipv6_have_no_ipv4_range() -> None:
    state = State({"VPCIPv6CidrBlock": BLOCK})
    zone = Zone(name="a", internal="10.0.1.0/24")

    (found,) = zone_ranges(desired(zone, families=("IPv6",)), state, Snapshot())

    assert found.workers == ("2001:db8:1234:1a00::/64",)
    assert found.internal == ("2001:db8:1234:1a01::/64",)


@pytest.mark.parametrize("zone", [ZONES[0], Zone(name="a", workers_subnet_id="subnet-1")])
@pytest.mark.parametrize("families", [("IPv4",), ("IPv6",), ("IPv4", "IPv6")])
@pytest.mark.parametrize("dual_stack", [True, False])
def test_rules_have_only_ranges_of_the_families(
    zone: Zone, families: tuple[str, ...], *, dual_stack: bool
) -> None:
    """Subnets of an IPv4 cluster have IPv6 ranges with `dualStack`, or if the user wants them."""
    roles = ("SubnetWorkers", "SubnetPrivateUtility", "SubnetPublicUtility")
    ranges = {
        f"Zones/a/{role}{field}": cidr
        for number, role in enumerate(roles)
        for field, cidr in (
            ("CIDR", f"10.7.{number}.0/24"),
            ("IPv6CIDR", f"2001:db8:1234:1a9{number}::/64"),
        )
    }
    asked = desired(zone, families=families, efs=True)
    config = msgspec.structs.replace(asked.config, dual_stack=DualStack(enabled=dual_stack))
    asked = dataclasses.replace(asked, config=config)

    found = zone_ranges(asked, State({"VPCIPv6CidrBlock": BLOCK, **ranges}), Snapshot())

    peers = {rule.peer for rule in desired_rules(asked, GROUP, found) if rule.is_range}
    assert {"IPv6" if ":" in peer else "IPv4" for peer in peers} == set(families)
    assert len(peers) == 4 * len(families)


def test_ranges_of_user_provided_subnets_are_read_from_aws() -> None:
    state = State(
        {
            "VPCIPv6CidrBlock": BLOCK,
            "Zones/a/SubnetWorkersCIDR": "10.7.0.0/24",
            "Zones/a/SubnetPublicUtilityCIDR": "10.7.9.0/24",
            "Zones/a/SubnetPublicUtilityIPv6CIDR": "2001:db8:1234:1a99::/64",
        }
    )
    zone = Zone(name="a", workers_subnet_id="subnet-1")

    (found,) = zone_ranges(desired(zone, families=("IPv4", "IPv6")), state, Snapshot())

    assert found == Ranges(("10.7.0.0/24",), (), ("10.7.9.0/24", "2001:db8:1234:1a99::/64"))


def described(*ingress: JsonObject) -> JsonObject:
    return {"GroupId": GROUP, "OwnerId": "1", "IpPermissions": list(ingress)}


def test_each_peer_is_a_separate_rule() -> None:
    group = described(
        {
            "IpProtocol": "tcp",
            "FromPort": 80,
            "ToPort": 81,
            "IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "x"}, {"CidrIp": "0.0.0.0/0"}],
            "Ipv6Ranges": [{"CidrIpv6": "2001:DB8::/32"}],
            "UserIdGroupPairs": [{"GroupId": "sg-1", "UserId": "1"}],
            "PrefixListIds": [],
        }
    )

    peers = ("10.0.0.0/8", EVERYWHERE, "2001:db8::/32", "sg-1")
    assert rules_of(group) == {Rule(INGRESS, TCP, (80, 81), peer) for peer in peers}


@pytest.mark.parametrize(
    "peer",
    [
        {"PrefixListIds": [{"PrefixListId": "pl-1"}]},
        {"UserIdGroupPairs": [{"GroupId": "sg-1", "UserId": "2"}]},
        {"UserIdGroupPairs": [{"GroupId": "sg-1", "VpcPeeringConnectionId": "pcx-1"}]},
        {"SomethingNew": [{"Id": "new-1"}]},
    ],
)
def test_unknown_rules_are_kept_unchanged(peer: JsonObject) -> None:
    permission = {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, **peer}

    (rule,) = rules_of(described(permission))

    assert rule.is_opaque
    assert permissions([rule], INGRESS) == [permission]
    assert compare(frozenset(), described(permission)).revoke == {rule}


def test_rules_of_bastions_are_kept() -> None:
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    group = described({**ssh, "UserIdGroupPairs": [{"GroupId": "sg-b"}, {"GroupId": "sg-x"}]})

    changes = compare(frozenset(), group, keep=["sg-b"])

    assert changes.revoke == {Rule(INGRESS, TCP, (22, 22), "sg-x")}


@pytest.mark.parametrize(
    ("name", "tags", "is_ours"),
    [
        (f"{TID}-cli-1-bsg", {}, True),
        (f"{TID}-cli-1-bsg", {f"kubernetes.io/cluster/{TID}": "owned"}, True),
        (f"{TID}-two-cli-1-bsg", {f"kubernetes.io/cluster/{TID}-two": "owned"}, False),
        (f"{TID}-nodes", {}, False),
        ("other-bsg", {}, False),
    ],
)
def test_bastions_are_recognized_by_name_and_tag(
    name: str, tags: dict[str, str], *, is_ours: bool
) -> None:
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]

    found = bastion_groups(desired(), {"sg-b": {"GroupName": name, "Tags": listed}})

    assert bool(found) is is_ours


def test_nodes_have_the_user_provided_group_or_the_managed_one() -> None:
    state = State({"NodesSecurityGroup": "sg-1"})

    assert nodes_security_group(desired(), state) == "sg-1"
    assert nodes_security_group(desired(own="sg-2"), state) == "sg-2"
    assert nodes_security_group(desired(), State()) == ""


RULES = st.builds(
    Rule,
    st.sampled_from([INGRESS, EGRESS]),
    st.sampled_from([TCP, UDP]),
    st.tuples(st.integers(1, 9), st.integers(10, 20)),
    st.sampled_from(["10.0.0.0/8", EVERYWHERE, EVERYWHERE_6, "sg-1", GROUP]),
)
DIRECTIONS: tuple[Direction, ...] = (INGRESS, EGRESS)


@given(st.frozensets(RULES))
def test_rules_survive_a_round_trip_to_aws(rules: frozenset[Rule]) -> None:
    group = {FIELDS[direction]: permissions(rules, direction) for direction in DIRECTIONS}

    assert rules_of(group) == rules


@given(st.frozensets(RULES), st.frozensets(RULES))
def test_applying_the_changes_gives_the_desired_rules(
    desired: frozenset[Rule], present: frozenset[Rule]
) -> None:
    group = {FIELDS[direction]: permissions(present, direction) for direction in DIRECTIONS}

    changes = compare(desired, group)

    assert (present | changes.authorize) - changes.revoke == desired
    assert not changes.authorize & present
    assert bool(changes) is (desired != present)
