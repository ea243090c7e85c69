"""Validation of InfrastructureConfigs, row by row (spec 30 §1.4, V1-V19)."""

from typing import Any

import pytest

from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.validation import ShootFacts, check_config, check_written

FACTS = ShootFacts(
    nodes="10.250.0.0/16",
    pods="100.96.0.0/11",
    services="100.64.0.0/13",
    zones=("eu-west-1a", "eu-west-1b", "eu-west-1c"),
)
IPV6 = ShootFacts(families=("IPv6",))
DUAL = ShootFacts(families=("IPv4", "IPv6"), nodes="10.250.0.0/16")
REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
FORBIDDEN = "FieldValueForbidden"
DUPLICATE = "FieldValueDuplicate"
UNSUPPORTED = "FieldValueNotSupported"


def managed_zone(name: str = "eu-west-1a", index: int = 0, /, **other: Any) -> JsonObject:
    third = 64 * index
    ranges = {
        "workers": f"10.250.{third}.0/19",
        "internal": f"10.250.{third + 32}.0/20",
        "public": f"10.250.{third + 48}.0/20",
    }
    return _without_none({"name": name, **ranges, **other})


def byo_zone(name: str = "eu-west-1a", index: int = 0, /, **other: Any) -> JsonObject:
    return _without_none({"name": name, "workersSubnetID": f"subnet-workers{index}", **other})


def managed(*zones: JsonObject, vpc: JsonObject | None = None, **networks: Any) -> JsonObject:
    return {
        "networks": {
            "vpc": vpc if vpc is not None else {"cidr": "10.250.0.0/16"},
            "zones": list(zones) or [managed_zone()],
            **networks,
        }
    }


def byo(*zones: JsonObject, vpc: JsonObject | None = None, **networks: Any) -> JsonObject:
    return managed(*(zones or (byo_zone(),)), vpc=vpc or {"id": "vpc-1"}, **networks)


def _without_none(value: JsonObject) -> JsonObject:
    return {name: entry for name, entry in value.items() if entry is not None}


def decoded(value: JsonObject) -> InfrastructureConfig:
    return read_strict(InfrastructureConfig, value, INFRASTRUCTURE_CONFIG)


def findings(value: JsonObject, facts: ShootFacts = FACTS) -> list[Cause]:
    return list(check_config(decoded(value), facts))


def found(value: JsonObject, facts: ShootFacts = FACTS) -> set[tuple[str, str]]:
    return {(cause.reason, cause.field) for cause in findings(value, facts)}


PATTERN_1 = managed(managed_zone(), managed_zone("eu-west-1b", 1), managed_zone("eu-west-1c", 2))
PATTERN_2 = byo(
    byo_zone(publicSubnetID="subnet-public0", internalSubnetID="subnet-internal0"),
    byo_zone("eu-west-1b", 1, publicSubnetID="subnet-public1", internalSubnetID="subnet-internal1"),
    nodesSecurityGroupID="sg-0123456789abcdef0",
)
PATTERN_3 = byo(byo_zone(), byo_zone("eu-west-1b", 1), nodesSecurityGroupID="sg-private")
PATTERN_4 = managed(
    managed_zone(public=None), vpc={"id": "vpc-private", "gatewayEndpoints": ["s3", "dynamodb"]}
)
PATTERN_5 = managed(vpc={"id": "vpc-1"}, nodesSecurityGroupID="sg-1")
LEGACY = managed(
    managed_zone(elasticIPAllocationID="eipalloc-0123"),
    vpc={"cidr": "10.250.0.0/16", "gatewayEndpoints": ["s3"]},
) | {
    "enableECRAccess": False,
    "dualStack": {"enabled": False},
    "ignoreTags": {"keys": ["team"], "keyPrefixes": ["cost-"]},
    "enableDedicatedTenancyForVPC": True,
    "elasticFileSystem": {"enabled": True},
    "enableMTUCustomizer": True,
}


@pytest.mark.parametrize(
    "value",
    [
        PATTERN_1,
        PATTERN_2,
        PATTERN_3,
        PATTERN_4,
        PATTERN_5,
        LEGACY,
        byo(),
        managed(vpc={"id": "vpc-1"}),
    ],
)
def test_the_patterns_are_accepted(value: JsonObject) -> None:
    assert findings(value) == []


def test_v1_at_least_one_zone_is_needed() -> None:
    assert found({"networks": {"vpc": {"id": "vpc-1"}}}) == {(REQUIRED, "networks.zones")}


def test_v2_a_zone_needs_worker_ranges_or_subnets() -> None:
    neither = {"name": "eu-west-1b"}

    assert found(managed(managed_zone(), neither)) == {(REQUIRED, "networks.zones[1]")}


def test_v2_a_zone_cannot_have_both_worker_ranges_and_subnets() -> None:
    both = byo_zone(workers="10.250.0.0/19")

    assert found(byo(both)) == {(INVALID, "networks.zones[0].workers")}


def test_v3_user_provided_and_managed_subnets_cannot_be_mixed() -> None:
    mixed = byo(byo_zone(), managed_zone("eu-west-1b"))

    assert found(mixed) == {(FORBIDDEN, "networks.zones")}


def test_v3_zones_without_any_workers_are_also_reported_as_a_whole() -> None:
    assert found(managed({"name": "eu-west-1a"})) == {
        (REQUIRED, "networks.zones"),
        (REQUIRED, "networks.zones[0]"),
    }


def test_v3_without_ipv4_zones_without_workers_cannot_be_mixed_with_user_provided_ones() -> None:
    mixed = byo(byo_zone(), {"name": "eu-west-1b"})

    assert found(mixed, IPV6) == {(FORBIDDEN, "networks.zones")}


@pytest.mark.parametrize("name", ["internal", "public"])
def test_v4_no_subnet_is_created_besides_user_provided_workers(name: str) -> None:
    zone = byo_zone(**{name: "10.250.32.0/20"})

    assert found(byo(zone)) == {(FORBIDDEN, f"networks.zones[0].{name}")}
    (cause,) = findings(byo(zone))
    assert f"{name}SubnetID" in cause.message


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID"])
def test_v5_load_balancer_subnets_need_user_provided_workers(name: str) -> None:
    path = f"networks.zones[0].{name}"
    zone = managed_zone(**{name: "subnet-1"})

    assert found(managed(zone, vpc={"id": "vpc-1"})) == {(FORBIDDEN, path)}


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID"])
def test_v5_load_balancer_subnets_need_a_user_provided_vpc(name: str) -> None:
    zone = byo_zone(**{name: "subnet-1"})

    assert found(byo(zone, vpc={"cidr": "10.250.0.0/16"})) == {
        (FORBIDDEN, f"networks.zones[0].{name}"),
        (FORBIDDEN, "networks.zones[0].workersSubnetID"),
    }


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID"])
def test_v5_a_load_balancer_subnet_belongs_to_one_zone(name: str) -> None:
    zones = [byo_zone(zone, i, **{name: "subnet-1"}) for i, zone in enumerate(FACTS.zones or ())]

    assert found(byo(*zones)) == {
        (DUPLICATE, f"networks.zones[1].{name}"),
        (DUPLICATE, f"networks.zones[2].{name}"),
    }


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID", "workersSubnetID"])
@pytest.mark.parametrize(
    ("subnet", "reason"),
    [
        ("", REQUIRED),
        ("subnet-", INVALID),
        ("subnet-A", INVALID),
        ("subnet-a-b", INVALID),
        ("vpc-1", INVALID),
        (" subnet-1", INVALID),
        ("subnet-1\n", INVALID),
        ("subnet-" + "1" * 249, INVALID),
    ],
)
def test_v5_v9_a_subnet_id_must_be_valid(name: str, subnet: str, reason: str) -> None:
    zone = byo_zone(**{name: subnet})

    assert found(byo(zone)) == {(reason, f"networks.zones[0].{name}")}


def test_v9_the_longest_subnet_id_is_accepted() -> None:
    assert found(byo(byo_zone(workersSubnetID="subnet-" + "1" * 248))) == set()


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID"])
def test_v6_all_zones_or_none_have_a_load_balancer_subnet(name: str) -> None:
    zones = [byo_zone(), byo_zone("eu-west-1b", 1, **{name: "subnet-1"})]

    assert found(byo(*zones)) == {(REQUIRED, f"networks.zones[0].{name}")}


def test_v7_a_subnet_cannot_be_public_and_internal() -> None:
    zone = byo_zone(publicSubnetID="subnet-1", internalSubnetID="subnet-1")

    assert found(byo(zone)) == {
        (INVALID, "networks.zones[0].internalSubnetID"),
        (DUPLICATE, "networks.zones[0].internalSubnetID"),
    }


@pytest.mark.parametrize("name", ["publicSubnetID", "internalSubnetID"])
def test_v8_nodes_and_load_balancers_may_share_a_subnet(name: str) -> None:
    assert found(byo(byo_zone(**{name: "subnet-workers0"}))) == set()


def test_v9_user_provided_workers_need_a_user_provided_vpc() -> None:
    assert found(byo(vpc={"cidr": "10.250.0.0/16"})) == {
        (FORBIDDEN, "networks.zones[0].workersSubnetID")
    }


def test_v9_a_worker_subnet_belongs_to_one_zone() -> None:
    zones = [byo_zone(), byo_zone("eu-west-1b")]

    assert found(byo(*zones)) == {(DUPLICATE, "networks.zones[1].workersSubnetID")}


def test_v10_a_security_group_needs_a_user_provided_vpc() -> None:
    assert found(managed(nodesSecurityGroupID="sg-1")) == {
        (FORBIDDEN, "networks.nodesSecurityGroupID")
    }


@pytest.mark.parametrize("group", ["sg-", "sg-A", "subnet-1", "sg-" + "1" * 253])
def test_v10_a_security_group_id_must_be_valid(group: str) -> None:
    assert found(byo(nodesSecurityGroupID=group)) == {(INVALID, "networks.nodesSecurityGroupID")}
    assert found(byo(nodesSecurityGroupID="")) == {(REQUIRED, "networks.nodesSecurityGroupID")}


def test_v10_a_security_group_may_be_user_provided_without_subnets() -> None:
    assert found(PATTERN_5) == set()


@pytest.mark.parametrize("missing", ["public", "workers"])
def test_v11_an_elastic_ip_needs_workers_and_a_public_subnet(missing: str) -> None:
    zone = managed_zone("eu-west-1b", 1, elasticIPAllocationID="eipalloc-1", **{missing: None})
    value = managed(managed_zone(), zone)

    assert (FORBIDDEN, "networks.zones[1].elasticIPAllocationID") in found(value)


def test_v11_an_elastic_ip_is_forbidden_with_user_provided_subnets() -> None:
    zone = byo_zone(elasticIPAllocationID="eipalloc-1")

    assert found(byo(zone)) == {(FORBIDDEN, "networks.zones[0].elasticIPAllocationID")}


def test_v11_without_ipv4_an_elastic_ip_needs_no_range_for_workers() -> None:
    zone = managed_zone(elasticIPAllocationID="eipalloc-1", workers=None)

    assert found(managed(zone), IPV6) == set()


@pytest.mark.parametrize("address", ["eipalloc-", "eipalloc-X", "1.2.3.4"])
def test_v11_an_elastic_ip_id_must_be_valid(address: str) -> None:
    assert found(managed(managed_zone(elasticIPAllocationID=address))) == {
        (INVALID, "networks.zones[0].elasticIPAllocationID")
    }
    assert found(managed(managed_zone(elasticIPAllocationID=""))) == {
        (REQUIRED, "networks.zones[0].elasticIPAllocationID")
    }


def test_v11_an_elastic_ip_belongs_to_one_zone() -> None:
    zones = [
        managed_zone(name, i, elasticIPAllocationID="eipalloc-1")
        for i, name in enumerate(("eu-west-1a", "eu-west-1b"))
    ]

    assert found(managed(*zones)) == {(DUPLICATE, "networks.zones[1].elasticIPAllocationID")}


def test_v12_gateway_endpoints_are_forbidden_with_user_provided_subnets() -> None:
    value = byo(vpc={"id": "vpc-1", "gatewayEndpoints": ["s3"]})

    (cause,) = findings(value)
    assert (cause.reason, cause.field) == (FORBIDDEN, "networks.vpc.gatewayEndpoints")
    assert "create the endpoints on your own" in cause.message
    assert "route tables" in cause.message


@pytest.mark.parametrize(
    ("name", "is_right"),
    [("s3", True), ("s3-global.accesspoint", True), ("S3", False), ("", False), ("a_b", False)],
)
def test_v12_gateway_endpoints_have_short_names(name: str, *, is_right: bool) -> None:
    value = managed(vpc={"id": "vpc-1", "gatewayEndpoints": ["dynamodb", name]})

    expected = set() if is_right else {(INVALID, "networks.vpc.gatewayEndpoints[1]")}
    assert found(value) == expected


@pytest.mark.parametrize("vpc", [{}, {"id": "vpc-1", "cidr": "10.250.0.0/16"}])
def test_v13_the_vpc_has_either_an_id_or_a_range(vpc: JsonObject) -> None:
    assert found(managed(vpc=vpc)) == {(INVALID, "networks.vpc")}


@pytest.mark.parametrize("name", ["vpc-", "vpc-X", "vpc1", "vpc-" + "1" * 252])
def test_v13_a_vpc_id_must_be_valid(name: str) -> None:
    assert found(managed(vpc={"id": name})) == {(INVALID, "networks.vpc.id")}
    assert found(managed(vpc={"id": ""})) == {(REQUIRED, "networks.vpc.id")}


def test_v14_a_zone_must_be_in_the_region() -> None:
    (cause,) = findings(managed(managed_zone("eu-west-1d")))

    assert (cause.reason, cause.field) == (UNSUPPORTED, "networks.zones[0].name")
    assert 'supported values: "eu-west-1a", "eu-west-1b", "eu-west-1c"' in cause.message


def test_v14_without_a_cloud_profile_any_zone_is_accepted() -> None:
    assert found(managed(managed_zone("eu-west-1d")), ShootFacts()) == set()


@pytest.mark.parametrize("name", ["", "eu_west", "EU", "a/b", "eu-west-1a\n"])
def test_v14_a_zone_name_must_be_valid(name: str) -> None:
    assert found(managed(managed_zone(name)), ShootFacts()) == {(INVALID, "networks.zones[0].name")}


def test_v14_duplicate_zones_are_refused() -> None:
    value = managed(managed_zone(), managed_zone("eu-west-1a", 1))

    assert found(value) == {(DUPLICATE, "networks.zones[1].name")}


def test_v14_unchanged_zones_are_not_checked_again() -> None:
    old = managed(managed_zone("retired"), managed_zone("retired", 1), managed_zone("changed", 2))
    changed = {**managed_zone("changed", 2), "elasticIPAllocationID": "eipalloc-1"}
    new = managed(*old["networks"]["zones"][:2], changed, managed_zone("unknown", 3))

    causes = list(check_config(decoded(new), FACTS, decoded(old)))

    assert [(cause.reason, cause.field) for cause in causes] == [
        (UNSUPPORTED, "networks.zones[2].name"),
        (UNSUPPORTED, "networks.zones[3].name"),
    ]


@pytest.mark.parametrize("name", ["workers", "internal", "public"])
@pytest.mark.parametrize("text", ["", "10.250.0.0", "10.250.0.0/33", "x", "10.250.0.0/19/1"])
def test_v15_a_range_must_be_a_cidr(name: str, text: str) -> None:
    assert found(managed(managed_zone(**{name: text}))) == {(INVALID, f"networks.zones[0].{name}")}


@pytest.mark.parametrize("name", ["workers", "internal", "public"])
def test_v15_a_range_must_be_canonical(name: str) -> None:
    (cause,) = findings(managed(managed_zone(**{name: "10.250.192.5/24"})))

    assert cause.field == f"networks.zones[0].{name}"
    assert "must be valid canonical CIDR, which is 10.250.192.0/24" in cause.message


@pytest.mark.parametrize(
    ("cidr", "count"), [("10.250.0.1/16", 1), ("10.250.0.0", 1), ("10.250.0.0/255.255.0.0", 1)]
)
def test_v15_the_range_of_the_vpc_must_be_a_canonical_cidr(cidr: str, count: int) -> None:
    causes = findings(managed(vpc={"cidr": cidr}))

    assert [cause.field for cause in causes] == ["networks.vpc.cidr"] * count


def test_v15_ranges_must_not_overlap() -> None:
    zones = [managed_zone(), managed_zone("eu-west-1b", 1, public="10.250.0.0/20")]

    (cause,) = findings(managed(*zones))

    assert cause.field == "networks.zones[1].public"
    assert 'must not overlap with "networks.zones[0].workers" ("10.250.0.0/19")' in cause.message


@pytest.mark.parametrize("of", ["pods", "services"])
def test_v15_ranges_must_not_overlap_with_those_of_the_shoot(of: str) -> None:
    inside = ShootFacts(**{of: "10.250.32.0/21"})  # type: ignore[arg-type] # names of texts

    assert found(managed(vpc={"id": "vpc-1"}), inside) == {(INVALID, "networks.zones[0].internal")}


@pytest.mark.parametrize("of", ["pods", "services"])
def test_v15_the_vpc_must_not_overlap_with_ranges_of_the_shoot(of: str) -> None:
    inside = ShootFacts(**{of: "10.250.255.0/24"})  # type: ignore[arg-type] # names of texts

    assert found(managed(), inside) == {(INVALID, "networks.vpc.cidr")}


@pytest.mark.parametrize("name", ["internal", "public"])
def test_v15_ranges_must_be_inside_the_vpc(name: str) -> None:
    value = managed(managed_zone(**{name: "10.251.0.0/20"}))

    assert found(value) == {(INVALID, f"networks.zones[0].{name}")}
    assert found(value, DUAL) == set()


def test_v15_ranges_in_a_user_provided_vpc_are_left_to_aws() -> None:
    value = managed(managed_zone(public="10.251.0.0/20"), vpc={"id": "vpc-1"})

    assert found(value) == set()


def test_v15_worker_ranges_must_be_inside_the_node_range() -> None:
    facts = ShootFacts(nodes="10.250.32.0/19")

    assert found(managed(), facts) == {(INVALID, "networks.zones[0].workers")}


def test_v15_workers_of_a_dual_stack_shoot_are_not_compared_with_ipv6_nodes() -> None:
    facts = ShootFacts(families=("IPv6", "IPv4"), nodes="2001:db8::/64")

    assert found(managed(), facts) == set()


def test_v15_ipv6_workers_of_a_dual_stack_shoot_are_outside_of_ipv4_nodes() -> None:
    value = managed(managed_zone(workers="2001:db8::/64"))

    assert (INVALID, "networks.zones[0].workers") in found(value, DUAL)


@pytest.mark.parametrize(("length", "expected"), [(255, set()), (256, {INVALID})])
def test_the_name_of_a_zone_has_at_most_255_characters(length: int, expected: set[str]) -> None:
    facts = ShootFacts(nodes="10.250.0.0/16")

    assert {reason for reason, _ in found(managed(managed_zone("z" * length)), facts)} == expected


def test_v16_without_ipv4_the_range_of_workers_is_ignored() -> None:
    assert found(managed(managed_zone(workers="anything")), IPV6) == set()


def test_v16_without_ipv4_workers_need_no_range() -> None:
    assert found(managed(managed_zone(workers=None)), IPV6) == set()


def test_v17_a_file_system_in_user_provided_subnets_must_be_user_provided() -> None:
    value = byo() | {"elasticFileSystem": {"enabled": True}}

    assert found(value) == {(REQUIRED, "elasticFileSystem.id")}


@pytest.mark.parametrize(
    "file_system", [{"enabled": True, "id": "fs-1"}, {"enabled": False}, {"id": "fs-1"}, {}]
)
def test_v17_a_user_provided_or_disabled_file_system_is_accepted(
    file_system: JsonObject,
) -> None:
    assert found(byo() | {"elasticFileSystem": file_system}) == set()


def test_v17_a_file_system_may_be_created_with_managed_subnets() -> None:
    assert found(managed() | {"elasticFileSystem": {"enabled": True}}) == set()


def test_v17_a_file_system_id_must_be_valid() -> None:
    value = byo() | {"elasticFileSystem": {"enabled": True, "id": "efs"}}

    assert found(value) == {(INVALID, "elasticFileSystem.id")}


@pytest.mark.parametrize(
    ("pool", "count"),
    [
        ({"id": "ipam-pool-1", "cidrBlock": "2001:db8::/56"}, 0),
        ({"id": "ipam-pool-1"}, 0),
        ({"cidrBlock": "2001:db8::/56"}, 1),
        ({"id": "ipam-pool-1", "cidrBlock": "10.0.0.0/16"}, 1),
        ({"id": "ipam-pool-1", "cidrBlock": "2001:db8::1/56"}, 1),
        ({"id": "ipam-pool-1", "cidrBlock": "2001:DB8::/56"}, 0),
        ({"id": "ipam-pool-1", "cidrBlock": "2001:db8::/48"}, 1),
        ({"id": "ipam-pool-1", "cidrBlock": ""}, 1),
        ({"cidrBlock": "2001:db8::1/48"}, 3),
    ],
)
def test_v18_the_ipv6_block_of_a_pool_must_be_a_56(pool: JsonObject, count: int) -> None:
    causes = findings(managed(vpc={"cidr": "10.250.0.0/16", "ipv6IpamPool": pool}), DUAL)

    path = "networks.vpc.ipv6IpamPool.cidrBlock"
    assert [(cause.reason, cause.field) for cause in causes] == [(INVALID, path)] * count


@pytest.mark.parametrize(
    ("key", "is_right"),
    [
        ("team", True),
        ("cost center/a.b:c=d+e@f-g_h", True),
        ("Names", True),
        ("my.kubernetes.io", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("ä", False),
        ("a*", False),
        ("Name", False),
        ("kubernetes.io/cluster/x", False),
        ("gardener.cloud", False),
    ],
)
def test_v19_ignored_tag_keys_must_not_be_cluster_tags(key: str, *, is_right: bool) -> None:
    value = managed() | {"ignoreTags": {"keys": ["team", key]}}

    assert found(value) == (set() if is_right else {(INVALID, "ignoreTags.keys[1]")})


def test_v19_ignored_tags_must_not_be_empty() -> None:
    assert found(managed() | {"ignoreTags": {"keys": [""], "keyPrefixes": [""]}}) == {
        (REQUIRED, "ignoreTags.keys[0]"),
        (REQUIRED, "ignoreTags.keyPrefixes[0]"),
    }


@pytest.mark.parametrize(
    ("prefix", "is_right"),
    [
        ("team-", True),
        ("my.kubernetes.io", True),
        ("Name-", True),
        ("ä", False),
        ("N", False),
        ("Name", False),
        ("kube", False),
        ("kubernetes.io/role", False),
        ("gardener.cloud/", False),
        ("g", False),
    ],
)
def test_v19_ignored_tag_prefixes_must_not_match_cluster_tags(
    prefix: str, *, is_right: bool
) -> None:
    value = managed() | {"ignoreTags": {"keyPrefixes": [prefix]}}

    assert found(value) == (set() if is_right else {(INVALID, "ignoreTags.keyPrefixes[0]")})


def test_all_findings_are_reported_together() -> None:
    value = {
        "networks": {
            "vpc": {"cidr": "10.250.0.1/16", "gatewayEndpoints": ["S3"]},
            "nodesSecurityGroupID": "group",
            "zones": [byo_zone("", internal="x"), managed_zone("eu-west-1d")],
        },
        "elasticFileSystem": {"enabled": True},
        "ignoreTags": {"keys": ["Name"]},
    }

    assert found(value) == {
        (INVALID, "networks.vpc.cidr"),
        (INVALID, "networks.vpc.gatewayEndpoints[0]"),
        (FORBIDDEN, "networks.vpc.gatewayEndpoints"),
        (INVALID, "networks.nodesSecurityGroupID"),
        (FORBIDDEN, "networks.nodesSecurityGroupID"),
        (INVALID, "networks.zones[0].name"),
        (UNSUPPORTED, "networks.zones[0].name"),
        (UNSUPPORTED, "networks.zones[1].name"),
        (FORBIDDEN, "networks.zones"),
        (FORBIDDEN, "networks.zones[0].internal"),
        (INVALID, "networks.zones[0].internal"),
        (FORBIDDEN, "networks.zones[0].workersSubnetID"),
        (REQUIRED, "elasticFileSystem.id"),
        (INVALID, "ignoreTags.keys[0]"),
    }


TYPED: JsonObject = {
    "apiVersion": INFRASTRUCTURE_CONFIG.api_version,
    "kind": INFRASTRUCTURE_CONFIG.kind,
}


def written(value: JsonObject) -> list[tuple[str, str]]:
    causes = check_written(value, FACTS, path="spec.providerConfig")
    return [(cause.reason, cause.field) for cause in causes]


def test_findings_have_their_path_in_the_object() -> None:
    value = TYPED | byo(nodesSecurityGroupID="sg")

    assert written(value) == [(INVALID, "spec.providerConfig.networks.nodesSecurityGroupID")]


def test_a_config_needs_its_api_version_and_kind() -> None:
    assert written(managed()) == [
        (INVALID, "spec.providerConfig.apiVersion"),
        (INVALID, "spec.providerConfig.kind"),
    ]


def test_the_error_about_an_unknown_field_suggests_a_similar_one() -> None:
    value = TYPED | managed(managed_zone(workersSubnetId="subnet-1"))

    (cause,) = check_written(value, FACTS, path="spec.providerConfig")
    assert cause.field == "spec.providerConfig.networks.zones[0].workersSubnetId"
    assert 'did you mean "workersSubnetID"?' in cause.message


def test_additional_security_groups_are_refused() -> None:
    """The controllers of the original read the config strictly, and know one group only."""
    value = TYPED | byo(additionalNodesSecurityGroupIDs=["sg-1"])

    (cause,) = check_written(value, FACTS, path="spec.providerConfig")
    assert cause.field == "spec.providerConfig.networks.additionalNodesSecurityGroupIDs"
    assert "is not a known field" in cause.message


def test_null_equals_an_absent_field() -> None:
    value = TYPED | managed(managed_zone() | {"workersSubnetID": None}) | {"ignoreTags": None}

    assert written(value) == []


def test_dual_stack_needs_an_explicit_switch() -> None:
    assert written(TYPED | managed() | {"dualStack": {}}) == [
        (REQUIRED, "spec.providerConfig.dualStack.enabled")
    ]
