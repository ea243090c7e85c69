"""Live checks L1 to L13 and hints, each in both directions (spec 30 §5)."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight import Finding, demand, findings
from pergola.providers.aws.snapshot import Snapshot

REGION = "eu-west-1"
A, B = f"{REGION}a", f"{REGION}b"
CLUSTER = "kubernetes.io/cluster/shoot--p--s"
BYO: JsonObject = {
    "networks": {
        "vpc": {"id": "vpc-1"},
        "nodesSecurityGroupID": "sg-1",
        "zones": [
            {
                "name": zone,
                "workersSubnetID": f"subnet-{letter}w",
                "publicSubnetID": f"subnet-{letter}p",
                "internalSubnetID": f"subnet-{letter}i",
            }
            for zone, letter in ((A, "a"), (B, "b"))
        ],
    }
}
MANAGED: JsonObject = {
    "networks": {
        "vpc": {"id": "vpc-1"},
        "zones": [
            {
                "name": A,
                "workers": "10.0.0.0/24",
                "public": "10.0.1.0/24",
                "internal": "10.0.2.0/24",
            }
        ],
    }
}
V6 = "2001:db8:0:100::/56"

Change = Callable[[Snapshot], object]


def desired(
    config: JsonObject = BYO,
    *,
    families: tuple[str, ...] = ("IPv4",),
    node_range: str = "",
    region: str = REGION,
) -> Desired:
    return Desired(
        technical_id="shoot--p--s",
        region=region,
        config=read_strict(InfrastructureConfig, config, INFRASTRUCTURE_CONFIG),
        families=families,
        node_range=node_range,
    )


def subnet(name: str, zone: str, number: int) -> JsonObject:
    return {
        "SubnetId": name,
        "VpcId": "vpc-1",
        "AvailabilityZone": zone,
        "CidrBlock": f"10.0.{number}.0/24",
        "AvailableIpAddressCount": 251,
        "AssignIpv6AddressOnCreation": True,
        "Ipv6CidrBlockAssociationSet": [
            {
                "AssociationId": f"assoc-{number}",
                "Ipv6CidrBlock": f"2001:db8:0:1{number:02x}::/64",
                "Ipv6CidrBlockState": {"State": "associated"},
            }
        ],
    }


def table(name: str, target: JsonObject, *subnets: str) -> JsonObject:
    return {
        "RouteTableId": name,
        "Routes": [
            {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"},
            {"DestinationCidrBlock": "0.0.0.0/0", "State": "active", **target},
        ],
        "Associations": [{"SubnetId": each} for each in subnets],
    }


def healthy() -> Snapshot:
    """Return a network of two zones without errors."""
    letters = {"a": A, "b": B}
    several = [
        subnet(f"subnet-{letter}{role}", zone, 3 * list(letters).index(letter) + number)
        for letter, zone in letters.items()
        for number, role in enumerate("wpi")
    ]
    tables = [
        table("rtb-w", {"NatGatewayId": "nat-1"}, "subnet-aw", "subnet-bw"),
        table("rtb-p", {"GatewayId": "igw-1"}, "subnet-ap", "subnet-bp"),
        table("rtb-i", {"NatGatewayId": "nat-1"}, "subnet-ai", "subnet-bi"),
    ]
    values = {"domain-name": f"{REGION}.compute.internal"}
    return Snapshot(
        vpc={
            "VpcId": "vpc-1",
            "CidrBlock": "10.0.0.0/16",
            "DhcpOptionsId": "dopt-1",
            "Ipv6CidrBlockAssociationSet": [
                {"Ipv6CidrBlock": V6, "Ipv6CidrBlockState": {"State": "associated"}}
            ],
            "CidrBlockAssociationSet": [],
        },
        vpc_attributes={"enableDnsSupport": True, "enableDnsHostnames": True},
        dhcp_options={
            "dopt-1": {
                "DhcpConfigurations": [
                    {"Key": key, "Values": [{"Value": value}]} for key, value in values.items()
                ]
            }
        },
        internet_gateways={"igw-1": {"Attachments": [{"VpcId": "vpc-1"}]}},
        egress_only_gateways={"eigw-1": {"Attachments": [{"VpcId": "vpc-1"}]}},
        subnets={each["SubnetId"]: each for each in several},
        route_tables={each["RouteTableId"]: each for each in tables},
        nat_gateways={"nat-1": {"State": "available", "NatGatewayAddresses": []}},
        security_groups={"sg-1": {"GroupId": "sg-1", "VpcId": "vpc-1"}},
    )


def blocking(asked: Desired, change: Change = lambda _: None) -> list[Finding]:
    snapshot = healthy()
    change(snapshot)
    return [finding for finding in findings(asked, snapshot) if finding.blocks]


def hints(asked: Desired, change: Change = lambda _: None) -> list[Finding]:
    snapshot = healthy()
    change(snapshot)
    return [finding for finding in findings(asked, snapshot) if not finding.blocks]


def only(found: list[Finding]) -> tuple[str, str, str]:
    """Return field, message and fix of the only finding."""
    assert len(found) == 1, list(map(str, found))
    return found[0].cause.field, found[0].cause.message, found[0].fix


def config(base: JsonObject, path: str, value: object) -> JsonObject:
    changed = deepcopy(base)
    place: Any = changed
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        place = place[part]
    place[last] = value
    return changed


@pytest.mark.parametrize("asked", [desired(), desired(MANAGED)])
@pytest.mark.parametrize("families", [("IPv4",), ("IPv6",), ("IPv4", "IPv6")])
def test_a_valid_network_has_no_findings(asked: Desired, families: tuple[str, ...]) -> None:
    assert findings(replace(asked, families=families), healthy()) == []


def test_a_vpc_that_is_created_is_not_checked() -> None:
    created = config(MANAGED, "networks.vpc", {"cidr": "10.0.0.0/16"})

    assert findings(desired(created), Snapshot()) == []


# L1 to L4


def gone(snapshot: Snapshot) -> None:
    snapshot.vpc = None
    snapshot.subnets.clear()


def test_l1_a_missing_vpc_is_reported() -> None:
    first = blocking(desired(MANAGED), gone)

    assert only(first)[:2] == (
        "networks.vpc.id",
        'Not found: "vpc-1": VPC vpc-1 has not been found in eu-west-1',
    )


@pytest.mark.parametrize(
    ("attribute", "flag"),
    [
        ("enableDnsSupport", "--enable-dns-support"),
        ("enableDnsHostnames", "--enable-dns-hostnames"),
    ],
)
def test_l1_dns_must_be_enabled(attribute: str, flag: str) -> None:
    field, message, fix = only(
        blocking(desired(), lambda s: s.vpc_attributes.update({attribute: False}))
    )

    assert field == "networks.vpc.id"
    assert "invalid VPC attributes" in message
    assert attribute in message
    assert fix == f"aws ec2 modify-vpc-attribute --vpc-id vpc-1 {flag} --region eu-west-1"


@pytest.mark.parametrize("state", ["associating", None])
def test_l2_ipv6_needs_an_associated_block(state: str | None) -> None:
    def change(snapshot: Snapshot) -> None:
        assert snapshot.vpc is not None
        blocks = snapshot.vpc["Ipv6CidrBlockAssociationSet"]
        blocks[0]["Ipv6CidrBlockState"] = {"State": state}

    dual = config(MANAGED, "dualStack", {"enabled": True})

    assert blocking(desired(MANAGED), change) == []
    assert only(blocking(desired(dual), change))[0] == "networks.vpc.id"
    by_family = only(blocking(desired(MANAGED, families=("IPv6",)), change))
    assert "--amazon-provided-ipv6-cidr-block" in by_family[2]


def test_l3_only_a_public_range_needs_an_internet_gateway() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.internet_gateways.clear()

    private = deepcopy(MANAGED)
    del private["networks"]["zones"][0]["public"]

    field, message, fix = only(blocking(desired(MANAGED), change))
    assert field == "networks.vpc.id"
    assert "no attached internet gateway found" in message
    assert "attach-internet-gateway --vpc-id vpc-1" in fix
    assert blocking(desired(private), change) == []
    assert blocking(desired(), change) == []


def test_l3_an_internet_gateway_of_another_vpc_does_not_count() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.internet_gateways["igw-1"]["Attachments"] = [{"VpcId": "vpc-2"}]

    assert len(blocking(desired(MANAGED), change)) == 1


def test_only_managed_ipv6_needs_an_egress_only_gateway() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.egress_only_gateways.clear()

    six = ("IPv6",)
    assert "create-egress-only" in only(blocking(desired(MANAGED, families=six), change))[2]
    assert blocking(desired(MANAGED), change) == []
    assert blocking(desired(families=six), change) == []


@pytest.mark.parametrize("said", [None, "example.org"])
def test_l4_dhcp_options_need_the_domain_of_the_region(said: str | None) -> None:
    def change(snapshot: Snapshot) -> None:
        values = [{"Key": "domain-name", "Values": [{"Value": said}]}] if said else []
        snapshot.dhcp_options["dopt-1"]["DhcpConfigurations"] = values

    field, message, fix = only(blocking(desired(), change))

    assert field == "networks.vpc.id"
    assert "eu-west-1.compute.internal" in message
    assert (said or " no ") in message
    assert "associate-dhcp-options --vpc-id vpc-1" in fix
    assert "domain-name,Values=eu-west-1.compute.internal" in fix


def test_l4_dhcp_options_of_another_account_are_a_hint() -> None:
    """A VPC that is shared by RAM shows the id of its options, but not their content."""

    def change(snapshot: Snapshot) -> None:
        snapshot.dhcp_options.clear()

    assert blocking(desired(), change) == []
    path, message, _ = only(hints(desired(), change))
    assert path == "networks.vpc.id"
    assert "its DHCP options dopt-1 cannot be read" in message
    assert 'domain-name is "eu-west-1.compute.internal"' in message


def test_l4_a_vpc_without_dhcp_options_has_no_domain() -> None:
    def change(snapshot: Snapshot) -> None:
        assert snapshot.vpc is not None
        snapshot.vpc["DhcpOptionsId"] = "default"

    assert "have no domain-name" in only(blocking(desired(), change))[1]


@pytest.mark.parametrize(
    ("pods", "services", "title"),
    [
        ("10.0.1.0/24", "100.64.0.0/13", "pods"),
        ("100.96.0.0/11", "10.0.1.128/25", "services"),
    ],
)
def test_a_subnet_for_load_balancers_in_a_range_of_the_cluster_is_a_hint(
    pods: str, services: str, title: str
) -> None:
    asked = replace(desired(), pod_ranges=(pods, "2001:db8::/48"), service_ranges=(services,))

    path, message, _ = only(hints(asked))

    assert path == "networks.zones[0].publicSubnetID"
    assert f"range 10.0.1.0/24 of subnet subnet-ap overlaps with the range of {title}" in message


def test_l4_the_first_region_has_its_own_domain() -> None:
    assert "ec2.internal" in only(blocking(desired(region="us-east-1")))[1]


# L5


@pytest.mark.parametrize("field", ["workers", "public", "internal"])
def test_l5_ranges_must_be_inside_the_vpc(field: str) -> None:
    outside = desired(config(MANAGED, f"networks.zones.0.{field}", "10.9.0.0/24"))

    path, message, fix = only(blocking(outside))

    assert path == f"networks.zones[0].{field}"
    assert "10.9.0.0/24" in message
    assert "10.0.0.0/16" in message
    assert "associate-vpc-cidr-block --vpc-id vpc-1 --cidr-block 10.9.0.0/24" in fix


@pytest.mark.parametrize(("state", "count"), [("associated", 0), ("associating", 1)])
def test_l5_a_range_that_was_associated_later_counts(state: str, count: int) -> None:
    def change(snapshot: Snapshot) -> None:
        assert snapshot.vpc is not None
        more = {"CidrBlock": "10.9.0.0/16", "CidrBlockState": {"State": state}}
        snapshot.vpc["CidrBlockAssociationSet"] = [more]

    outside = desired(config(MANAGED, "networks.zones.0.workers", "10.9.0.0/24"))

    assert len(blocking(outside, change)) == count


# L6 to L9

ROLES = [("w", "workersSubnetID"), ("p", "publicSubnetID"), ("i", "internalSubnetID")]


@pytest.mark.parametrize(("role", "field"), ROLES)
def test_l6_a_subnet_must_exist(role: str, field: str) -> None:
    path, message, fix = only(blocking(desired(), lambda s: s.subnets.pop(f"subnet-b{role}")))

    assert path == f"networks.zones[1].{field}"
    assert message.startswith(f'Not found: "subnet-b{role}"')
    assert f"Name=availability-zone,Values={B}" in fix
    assert "Values=vpc-1" in fix


@pytest.mark.parametrize(("role", "field"), ROLES)
def test_l6_a_subnet_in_another_zone_is_reported_with_both_zones(role: str, field: str) -> None:
    path, message, _ = only(
        blocking(desired(), lambda s: s.subnets[f"subnet-a{role}"].update(AvailabilityZone=B))
    )

    assert path == f"networks.zones[0].{field}"
    assert f"is in zone {B}, not in {A}" in message


@pytest.mark.parametrize(("role", "field"), ROLES)
def test_l6_a_subnet_in_another_vpc_is_reported_with_both_vpcs(role: str, field: str) -> None:
    path, message, _ = only(
        blocking(desired(), lambda s: s.subnets[f"subnet-a{role}"].update(VpcId="vpc-2"))
    )

    assert path == f"networks.zones[0].{field}"
    assert "is in VPC vpc-2, not in vpc-1" in message


@pytest.mark.parametrize(("role", "field"), ROLES)
def test_l7_a_missing_ipv6_range_is_reported_with_a_free_one(role: str, field: str) -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.subnets[f"subnet-a{role}"]["Ipv6CidrBlockAssociationSet"] = []

    path, message, fix = only(blocking(desired(families=("IPv4", "IPv6")), change))

    taken = {"w": 0, "p": 1, "i": 2}[role]
    free = f"2001:db8:0:1{taken:02x}::/64"
    assert path == f"networks.zones[0].{field}"
    assert "has 0 IPv6 ranges; it needs exactly one" in message
    assert f"associate-subnet-cidr-block --subnet-id subnet-a{role} --ipv6-cidr-block {free}" in fix
    assert blocking(desired(), change) == []


def test_l7_different_free_ranges_are_proposed_for_several_subnets() -> None:
    def change(snapshot: Snapshot) -> None:
        for each in snapshot.subnets.values():
            each["Ipv6CidrBlockAssociationSet"] = []

    offered = {finding.fix.split()[6] for finding in blocking(desired(families=("IPv6",)), change)}

    assert offered == {f"2001:db8:0:10{number}::/64" for number in range(6)}


def test_l7_a_second_ipv6_range_is_reported() -> None:
    def change(snapshot: Snapshot) -> None:
        ranges = snapshot.subnets["subnet-aw"]["Ipv6CidrBlockAssociationSet"]
        ranges.append({**ranges[0], "Ipv6CidrBlock": "2001:db8:0:1ff::/64", "AssociationId": "x"})

    _, message, fix = only(blocking(desired(families=("IPv6",)), change))

    assert "has 2 IPv6 ranges" in message
    assert "disassociate-subnet-cidr-block --association-id x" in fix


@pytest.mark.parametrize(("role", "count"), [("w", 1), ("p", 0), ("i", 0)])
def test_l7_worker_subnets_must_assign_ipv6_addresses(role: str, count: int) -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.subnets[f"subnet-a{role}"]["AssignIpv6AddressOnCreation"] = False

    found = blocking(desired(families=("IPv4", "IPv6")), change)

    assert len(found) == count
    assert all("--assign-ipv6-address-on-creation" in finding.fix for finding in found)
    assert blocking(desired(), change) == []


@pytest.mark.parametrize("change", [{"Ipv6Native": True}, {"CidrBlock": None}])
@pytest.mark.parametrize(("role", "count"), [("w", 0), ("p", 1), ("i", 1)])
def test_l8_subnets_for_load_balancers_need_ipv4(change: JsonObject, role: str, count: int) -> None:
    found = blocking(desired(), lambda s: s.subnets[f"subnet-a{role}"].update(change))

    assert len(found) == count
    assert all("no IPv4 range" in str(finding) for finding in found)


@pytest.mark.parametrize(
    ("nodes", "families", "paths"),
    [
        ("10.0.0.0/16", ("IPv4",), []),
        ("10.0.0.0/24", ("IPv4",), ["networks.zones[1].workersSubnetID"]),
        ("10.0.0.0/24", ("IPv6",), []),
        ("", ("IPv4",), []),
    ],
)
def test_l9_worker_subnets_must_be_inside_the_node_range(
    nodes: str, families: tuple[str, ...], paths: list[str]
) -> None:
    found = blocking(desired(node_range=nodes, families=families))

    assert [finding.cause.field for finding in found] == paths
    assert all("10.0.3.0/24" in str(finding) and nodes in str(finding) for finding in found)


# L10 to L13


def test_l10_a_missing_security_group_is_reported() -> None:
    path, message, _ = only(blocking(desired(), lambda s: s.security_groups.clear()))

    assert path == "networks.nodesSecurityGroupID"
    assert message.startswith('Not found: "sg-1"')


def test_l10_a_security_group_in_another_vpc_is_reported_with_both_vpcs() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.security_groups.clear()
        snapshot.foreign_groups["sg-1"] = {"GroupId": "sg-1", "VpcId": "vpc-2"}

    path, message, fix = only(blocking(desired(), change))

    assert path == "networks.nodesSecurityGroupID"
    assert "is in VPC vpc-2, not in vpc-1" in message
    assert "describe-security-groups --filters Name=vpc-id,Values=vpc-1" in fix


@pytest.mark.parametrize(("used", "is_enough"), [(13, True), (14, False), (16, False)])
def test_a_vpc_needs_a_free_ipv6_range_for_each_managed_subnet(
    used: int, *, is_enough: bool
) -> None:
    def change(snapshot: Snapshot) -> None:
        assert snapshot.vpc is not None
        snapshot.vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"] = "2001:db8:0:100::/60"
        snapshot.subnets = {
            f"subnet-{number}": subnet(f"subnet-{number}", B, number) for number in range(used)
        }

    found = blocking(desired(MANAGED, families=("IPv4", "IPv6")), change)

    assert bool(found) is not is_enough
    if not is_enough:
        path, message, fix = only(found)
        assert path == "networks.vpc.id"
        assert (
            f"3 subnets need a free IPv6 /64 each, but 2001:db8:0:100::/60 has {16 - used}"
            in message
        )
        assert "associate-vpc-cidr-block --vpc-id vpc-1" in fix


def test_subnets_that_exist_need_no_further_ipv6_range() -> None:
    def change(snapshot: Snapshot) -> None:
        assert snapshot.vpc is not None
        snapshot.vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"] = "2001:db8:0:100::/62"
        there = [subnet(f"subnet-{number}", A, number) for number in range(4)]
        for each in there[:3]:
            each["Tags"] = [{"Key": CLUSTER, "Value": "owned"}]
        snapshot.subnets = {each["SubnetId"]: each for each in there}

    assert blocking(desired(MANAGED, families=("IPv4", "IPv6")), change) == []


def test_l11_a_private_managed_network_needs_no_public_subnet() -> None:
    private = deepcopy(MANAGED)
    del private["networks"]["zones"][0]["public"]

    assert findings(desired(private), healthy()) == []


EIP = config(MANAGED, "networks.zones.0.elasticIPAllocationID", "eipalloc-1")


def test_l12_an_elastic_ip_must_exist() -> None:
    path, message, fix = only(blocking(desired(EIP)))

    assert path == "networks.zones[0].elasticIPAllocationID"
    assert message.startswith('Not found: "eipalloc-1"')
    assert "allocate-address" in fix


@pytest.mark.parametrize(
    ("association", "tags", "count"),
    [
        (None, [], 0),
        ("eipassoc-1", [{"Key": CLUSTER, "Value": "owned"}], 0),
        ("eipassoc-1", [{"Key": "kubernetes.io/cluster/other", "Value": "owned"}], 1),
        ("eipassoc-1", [], 1),
    ],
)
def test_l12_an_elastic_ip_must_be_free_or_used_by_this_clusters_nat_gateway(
    association: str | None, tags: list[JsonObject], count: int
) -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.addresses["eipalloc-1"] = {
            "AssociationId": association,
            "NetworkInterfaceId": "eni-1",
        }
        snapshot.nat_gateways["nat-1"] = {
            "Tags": tags,
            "NatGatewayAddresses": [{"AllocationId": "eipalloc-1"}],
        }

    found = blocking(desired(EIP), change)

    assert len(found) == count
    assert all("eni-1" in str(finding) for finding in found)
    assert all("--association-id eipassoc-1" in finding.fix for finding in found)


EFS = config(BYO, "elasticFileSystem", {"enabled": True, "id": "fs-1"})


@pytest.mark.parametrize(
    ("vpcs", "count"), [([], 0), (["vpc-1"], 0), (["vpc-2"], 1), (["vpc-1", "vpc-2"], 1)]
)
def test_l13_mount_targets_must_be_in_the_vpc(vpcs: list[str], count: int) -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.file_system = {"FileSystemId": "fs-1"}
        snapshot.mount_targets = {f"fsmt-{n}": {"VpcId": vpc} for n, vpc in enumerate(vpcs)}

    found = blocking(desired(EFS), change)

    assert [finding.cause.field for finding in found] == ["elasticFileSystem.id"] * count
    assert all("vpc-2, not in vpc-1" in str(finding) for finding in found)


def test_l13_a_file_system_must_exist() -> None:
    assert only(blocking(desired(EFS)))[1].startswith('Not found: "fs-1"')


# All findings together


def break_everything(snapshot: Snapshot) -> None:
    snapshot.vpc_attributes["enableDnsSupport"] = False
    snapshot.subnets["subnet-aw"]["AvailabilityZone"] = B
    del snapshot.subnets["subnet-bi"]
    snapshot.security_groups.clear()


def test_one_error_has_all_findings_with_their_fixes() -> None:
    snapshot = healthy()
    break_everything(snapshot)

    with pytest.raises(ExtensionError) as caught:
        demand(desired(), snapshot)

    text = str(caught.value)
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)
    for path in (
        "networks.vpc.id",
        "networks.zones[0].workersSubnetID",
        "networks.zones[1].internalSubnetID",
        "networks.nodesSecurityGroupID",
    ):
        assert path in text
    assert "aws ec2 modify-vpc-attribute" in text


def test_hints_do_not_block() -> None:
    snapshot = healthy()
    snapshot.route_tables["rtb-w"]["Routes"] = []

    assert {finding.blocks for finding in demand(desired(), snapshot)} == {False}


def test_every_finding_has_a_one_line_fix() -> None:
    snapshot = healthy()
    break_everything(snapshot)
    snapshot.route_tables["rtb-p"]["Routes"] = []

    lines = [finding.fix for finding in findings(desired(), snapshot)]

    assert len(lines) > 4
    assert all(line.startswith("aws ") and "\n" not in line for line in lines)
    assert all("--region eu-west-1" in line for line in lines)


# Hints


def test_workers_without_internet_access_are_reported_for_each_zone() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-w"]["Routes"].pop()

    found = hints(desired(), change)

    assert [finding.cause.field for finding in found] == [
        "networks.zones[0].workersSubnetID",
        "networks.zones[0].workersSubnetID",
        "networks.zones[1].workersSubnetID",
        "networks.zones[1].workersSubnetID",
    ]
    assert "create-route --route-table-id rtb-w" in found[0].fix
    assert "nat-1" in found[0].fix
    assert "com.amazonaws.eu-west-1.s3 --route-table-ids rtb-w" in found[1].fix


def test_a_transit_gateway_with_an_endpoint_counts_as_internet_access() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-w"]["Routes"][-1] = {
            "DestinationCidrBlock": "10.0.0.0/8",
            "TransitGatewayId": "tgw-1",
        }
        snapshot.endpoints["vpce-1"] = {
            "ServiceName": "com.amazonaws.eu-west-1.s3",
            "RouteTableIds": ["rtb-w"],
        }

    assert hints(desired(), change) == []


def test_an_existing_endpoint_only_needs_the_route_table() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-w"]["Routes"][-1] = {"TransitGatewayId": "tgw-1"}
        snapshot.endpoints["vpce-1"] = {
            "ServiceName": "com.amazonaws.eu-west-1.s3",
            "RouteTableIds": ["rtb-other"],
        }

    found = hints(desired(), change)

    assert "modify-vpc-endpoint --vpc-endpoint-id vpce-1 --add-route-table-ids rtb-w" in (
        found[0].fix
    )


def test_a_blackhole_default_route_is_reported() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-w"]["Routes"][-1]["State"] = "blackhole"

    found = hints(desired(), change)

    assert "leads to nat-1, which is gone" in str(found[0])
    assert "replace-route --route-table-id rtb-w" in found[0].fix


@pytest.mark.parametrize(("free", "count"), [(8, 0), (7, 1)])
@pytest.mark.parametrize("role", ["p", "i"])
def test_load_balancers_need_eight_free_addresses(role: str, free: int, count: int) -> None:
    found = hints(
        desired(), lambda s: s.subnets[f"subnet-a{role}"].update(AvailableIpAddressCount=free)
    )

    assert len(found) == count


def test_a_public_subnet_needs_a_route_to_the_internet_gateway() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-p"]["Routes"].pop()

    found = hints(desired(), change)

    assert [finding.cause.field for finding in found] == [
        "networks.zones[0].publicSubnetID",
        "networks.zones[1].publicSubnetID",
    ]
    assert "--gateway-id igw-1" in found[0].fix


def test_an_internal_subnet_must_not_have_a_route_to_the_internet_gateway() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_tables["rtb-i"]["Routes"][-1] = {
            "DestinationCidrBlock": "0.0.0.0/0",
            "GatewayId": "igw-1",
        }

    found = hints(desired(), change)

    assert len(found) == 2
    assert "delete-route --route-table-id rtb-i" in found[0].fix


def untagged() -> JsonObject:
    changed = deepcopy(BYO)
    for zone in changed["networks"]["zones"]:
        del zone["publicSubnetID"], zone["internalSubnetID"]
    return changed


def tagged(role: str, *names: str) -> Change:
    def change(snapshot: Snapshot) -> None:
        for name in names:
            snapshot.subnets[name]["Tags"] = [
                {"Key": CLUSTER, "Value": "shared"},
                {"Key": f"kubernetes.io/role/{role}", "Value": "1"},
            ]

    return change


def test_without_subnets_for_load_balancers_services_stay_pending() -> None:
    field, message, fix = only(hints(desired(untagged())))

    assert field == "networks.zones"
    assert "Services of type LoadBalancer stay pending" in message
    assert f"Key={CLUSTER},Value=shared" in fix


def test_tagged_subnets_in_every_zone_are_enough() -> None:
    assert hints(desired(untagged()), tagged("internal-elb", "subnet-ai", "subnet-bi")) == []


def test_zones_without_tagged_subnets_are_reported_when_others_have_some() -> None:
    found = hints(desired(untagged()), tagged("elb", "subnet-ap"))

    assert [finding.cause.field for finding in found] == [
        "networks.zones[1].publicSubnetID",
        "networks.zones",
    ]
    assert "application load balancer needs two" in str(found[1])


def test_several_tagged_subnets_in_a_zone_are_refused_with_their_ids() -> None:
    several = ("subnet-ap", "subnet-ai", "subnet-bp")
    field, message, fix = only(blocking(desired(untagged()), tagged("elb", *several)))

    assert field == "networks.zones[0].publicSubnetID"
    assert "subnet-ai, subnet-ap" in message
    assert f"delete-tags --resources subnet-ap --tags Key={CLUSTER} " in fix


def test_an_extra_tagged_subnet_is_refused_and_listed_in_the_fix() -> None:
    field, message, fix = only(blocking(desired(), tagged("elb", "subnet-ai")))

    assert field == "networks.zones[0].publicSubnetID"
    assert "subnet-ai, subnet-ap" in message
    assert f"delete-tags --resources subnet-ai --tags Key={CLUSTER} " in fix


# Room for nodes


def without_overlay(nodes: int, config: JsonObject = BYO) -> Desired:
    return replace(desired(config), overlay=False, most_nodes={A: nodes // 2, B: nodes // 2})


@pytest.mark.parametrize("config", [BYO, MANAGED])
def test_nodes_need_routes_that_the_account_may_not_have(config: JsonObject) -> None:
    def quota(value: int | None) -> Change:
        return lambda snapshot: setattr(snapshot, "route_quota", value)

    def warned(nodes: int, value: int | None) -> list[Finding]:
        return hints(
            replace(without_overlay(nodes, config), pod_ranges=("100.96.0.0/11",)), quota(value)
        )

    beside = 2 if config is BYO else 0
    assert warned(48, None) == warned(48, 50) == warned(200, 500) == []
    assert warned(500 - beside, 500) == []
    path, message, fix = only(warned(502 - beside, 500))
    assert path == "networks.zones"
    assert "the account must allow 502 routes in a table, but it allows 500" in message
    assert fix == (
        "aws service-quotas request-service-quota-increase --service-code vpc "
        "--quota-code L-93826ACB --desired-value 502 --region eu-west-1"
    )
    assert "cannot be read" in only(warned(60, None))[1]


def test_an_overlay_needs_no_routes() -> None:
    assert hints(replace(without_overlay(400), overlay=True)) == []
    assert hints(replace(without_overlay(400), families=("IPv6",))) == []


def test_routes_to_pods_are_not_counted_twice() -> None:
    """Nodes have their routes already, while the table of the user has others."""

    def change(snapshot: Snapshot) -> None:
        snapshot.route_quota = 60
        several = [{"DestinationCidrBlock": f"100.96.{number}.0/24"} for number in range(55)]
        six = [{"DestinationIpv6CidrBlock": f"2001:db8:{number}::/48"} for number in range(9)]
        snapshot.route_tables["rtb-w"]["Routes"] += [*several, *six]

    asked = replace(without_overlay(58), pod_ranges=("100.96.0.0/11",))

    assert hints(asked, change) == []
    more = replace(asked, most_nodes={A: 59})
    assert "beside 2 others in rtb-w" in only(hints(more, change))[1]


def test_a_single_route_is_not_several() -> None:
    def change(snapshot: Snapshot) -> None:
        snapshot.route_quota = 50
        for table in snapshot.route_tables.values():
            del table["Routes"][0]

    assert "needs a route beside 1 other in rtb-w:" in only(hints(without_overlay(60), change))[1]


def test_subnets_must_have_room_for_all_nodes() -> None:
    full = replace(desired(), most_nodes={A: 251, B: 252})

    path, message, fix = only(hints(full))

    assert path == "networks.zones[1].workersSubnetID"
    assert message == (
        "subnet subnet-bw has 251 addresses, 251 of them free, but the pools may have 252 nodes in "
        f"zone {B}"
    )
    assert f"Name=availability-zone,Values={B}" in fix
