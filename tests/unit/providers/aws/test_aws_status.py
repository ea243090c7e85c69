"""The status of an infrastructure (spec 30 §1.2)."""

from itertools import permutations

import msgspec
import pytest

from pergola.api.objects import JsonObject
from pergola.flow import State
from pergola.providers.aws.config import (
    ElasticFileSystem,
    InfrastructureConfig,
    Networks,
    Vpc,
    Zone,
)
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.status import (
    egress_cidrs,
    full_status,
    networking,
    provider_status,
    vpc_id,
)

A, B = "eu-west-1a", "eu-west-1b"
CREATED = {
    "VPC": "vpc-1",
    "NodesSecurityGroup": "sg-1",
    "KeyPair": "shoot--p--s-ssh-publickey",
    "IAMInstanceProfileName": "shoot--p--s-nodes",
    "IAMRoleARN": "arn:aws:iam::1:role/shoot--p--s-nodes",
    f"Zones/{A}/SubnetPrivateUtility": "subnet-ai",
    f"Zones/{A}/SubnetPublicUtility": "subnet-ap",
    f"Zones/{A}/SubnetWorkers": "subnet-aw",
    f"Zones/{B}/SubnetWorkers": "subnet-bw",
}
MANAGED = InfrastructureConfig(
    networks=Networks(vpc=Vpc(cidr="10.0.0.0/16"), zones=[Zone(name=B), Zone(name=A)])
)


def desired(config: InfrastructureConfig = MANAGED) -> Desired:
    return Desired(
        technical_id="shoot--p--s",
        region="eu-west-1",
        config=config,
        node_range="10.0.0.0/16",
        pod_ranges=("100.64.0.0/12",),
        service_ranges=("100.104.0.0/13",),
    )


def test_the_status_has_every_created_resource() -> None:
    assert provider_status(desired(), State(CREATED)) == {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureStatus",
        "ec2": {"keyName": "shoot--p--s-ssh-publickey"},
        "iam": {
            "instanceProfiles": [{"purpose": "nodes", "name": "shoot--p--s-nodes"}],
            "roles": [{"purpose": "nodes", "arn": "arn:aws:iam::1:role/shoot--p--s-nodes"}],
        },
        "vpc": {
            "id": "vpc-1",
            "subnets": [
                {"purpose": "nodes", "id": "subnet-bw", "zone": B},
                {"purpose": "nodes", "id": "subnet-aw", "zone": A},
                {"purpose": "public", "id": "subnet-ap", "zone": A},
                {"purpose": "internal", "id": "subnet-ai", "zone": A},
            ],
            "securityGroups": [{"purpose": "nodes", "id": "sg-1"}],
        },
    }


def test_the_order_does_not_depend_on_the_order_of_creation() -> None:
    texts = {
        str(provider_status(desired(), State(dict(several))))
        for several in permutations(list(CREATED.items())[-4:])
    }

    assert len(texts) == 1


def test_user_provided_ids_take_precedence_over_the_state() -> None:
    zone = Zone(name=A, workers_subnet_id="subnet-1", public_subnet_id="subnet-2")
    config = InfrastructureConfig(
        networks=Networks(vpc=Vpc(id="vpc-mine"), zones=[zone], nodes_security_group_id="sg-mine"),
        elastic_file_system=ElasticFileSystem(enabled=True, id="fs-mine"),
    )

    status = provider_status(desired(config), State({**CREATED, "efsSystemID": "fs-1"}))

    assert status["vpc"] == {
        "id": "vpc-mine",
        "subnets": [
            {"purpose": "nodes", "id": "subnet-1", "zone": A},
            {"purpose": "public", "id": "subnet-2", "zone": A},
            {"purpose": "internal", "id": "subnet-ai", "zone": A},
        ],
        "securityGroups": [{"purpose": "nodes", "id": "sg-mine"}],
    }
    assert status["elasticFileSystem"] == {"ID": "fs-mine"}


def test_a_discovered_subnet_in_an_unused_zone_is_not_reported() -> None:
    state = State({**CREATED, "Zones/eu-west-1c/SubnetPublicUtility": "subnet-cp"})

    subnets = provider_status(desired(), state)["vpc"]["subnets"]

    assert "subnet-cp" not in [subnet["id"] for subnet in subnets]


def test_subnets_are_only_reported_when_the_vpc_is_known() -> None:
    state = State({key: value for key, value in CREATED.items() if key != "VPC"})

    assert vpc_id(desired(), state) == ""
    assert provider_status(desired(), state)["vpc"]["subnets"] == []


def test_an_unset_value_is_never_reported() -> None:
    unset = {key: "" for key in CREATED if key.startswith("IAM")}
    state = State({**CREATED, **unset, f"Zones/{B}/SubnetWorkers": "", "KeyPair": ""})

    status = provider_status(desired(), state)

    assert status["iam"] == {"instanceProfiles": [], "roles": []}
    assert status["ec2"] == {"keyName": ""}
    assert [subnet["zone"] for subnet in status["vpc"]["subnets"]] == [A, A, A]


@pytest.mark.parametrize(
    ("config", "reported"),
    [
        (ElasticFileSystem(enabled=True), {"ID": "fs-1"}),
        (ElasticFileSystem(enabled=False), None),
        (None, None),
    ],
)
def test_a_file_system_is_reported_while_enabled(
    config: ElasticFileSystem | None, reported: JsonObject | None
) -> None:
    asked = desired(msgspec.structs.replace(MANAGED, elastic_file_system=config))

    status = provider_status(asked, State({"efsSystemID": "fs-1"}))

    assert status.get("elasticFileSystem") == reported


IPV6 = {"VPCIPv6CidrBlock": "2001:db8::/56", "ServiceCIDR": "2001:db8:0:0:0:ffff::/108"}


def test_egress_cidrs_are_the_addresses_of_nat_gateways() -> None:
    assert egress_cidrs(State({"EgressCIDRs": "1.2.3.4/32,5.6.7.8/32"})) == [
        "1.2.3.4/32",
        "5.6.7.8/32",
    ]
    assert egress_cidrs(State({"EgressCIDRs": "1.2.3.4/32", **IPV6})) == [
        "1.2.3.4/32",
        "2001:db8::/56",
    ]


def test_missing_egress_cidrs_clear_the_list_and_the_ipv6_block_is_listed_once() -> None:
    assert full_status(desired(), State())["egressCIDRs"] is None
    assert full_status(desired(), State(IPV6))["egressCIDRs"] == ["2001:db8::/56"]


@pytest.mark.parametrize("missing", ["VPCIPv6CidrBlock", "ServiceCIDR"])
def test_ipv6_ranges_are_reported_when_both_are_known(missing: str) -> None:
    partly = {key: value for key, value in IPV6.items() if key != missing}

    assert networking(desired(), State(IPV6)) == {
        "nodes": ["2001:db8::/56", "10.0.0.0/16"],
        "pods": ["2001:db8::/56", "100.64.0.0/12"],
        "services": ["2001:db8:0:0:0:ffff::/108", "100.104.0.0/13"],
    }
    assert networking(desired(), State(partly)) == {
        "nodes": ["10.0.0.0/16"],
        "pods": ["100.64.0.0/12"],
        "services": ["100.104.0.0/13"],
    }
    assert egress_cidrs(State(partly)) == []
