"""Networks of AWS, from its answers to the desired AWSCluster, without input or output."""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.cluster_api import (
    AWS_ACCOUNT,
    AWS_CONTROL_PLANE_TAG,
    AWS_LOAD_BALANCER,
    AWS_PROVIDER_TAG,
    AWS_SECURITY_GROUPS,
    AWS_SUBNET_TAGS,
    AWS_VPC,
    AWS_VPC_TAGS,
    AWS_ZONES,
    CLUSTER_NAME,
    SOURCE,
)
from pergola.api.objects import JsonObject
from pergola.externally_managed.aws import (
    AwsSettings,
    AwsSource,
    asks_aws,
    iam_policy,
    open_rules,
    templates_without_groups,
)
from pergola.externally_managed.aws.checks import unused_ipv6
from pergola.externally_managed.aws.decide import decide_network
from pergola.externally_managed.aws.desired import Desired, LoadBalancer, desired_of
from pergola.externally_managed.aws.observe import Observed
from pergola.externally_managed.aws.read import balancer_of, subnets_of
from pergola.externally_managed.description import Network
from pergola.externally_managed.ownership import MANAGER
from pergola.externally_managed.sources import SourceProblem
from pergola.kube.client import Client

REGION, ACCOUNT = "eu-west-1", "123456789012"
ARN = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:loadbalancer"
WANTED = Desired(region=REGION, cluster="demo", vpc_id="vpc-1")
OBJ: JsonObject = {"spec": {"region": REGION}}
NAT_ROUTE = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}
INTERNET_ROUTE = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}
LOCAL_ROUTE = {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"}


def tags(**pairs: str) -> list[JsonObject]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def subnet(name: str, zone: str, **fields: Any) -> JsonObject:
    found = {"SubnetId": f"subnet-{name}", "AvailabilityZone": f"{REGION}{zone}"}
    return {**found, "CidrBlock": "10.0.1.0/24", **fields}


def table(name: str, *routes: JsonObject, subnets: tuple[str, ...] = ()) -> JsonObject:
    """Return a route table of these subnets; without any, the main table."""
    associations: list[JsonObject] = [{"SubnetId": f"subnet-{each}"} for each in subnets]
    return {
        "RouteTableId": f"rtb-{name}",
        "Routes": [LOCAL_ROUTE, *routes],
        "Associations": associations or [{"Main": True}],
    }


def group(name: str, role: str = "", owner: str = "", *rules: JsonObject) -> JsonObject:
    said = {f"{AWS_PROVIDER_TAG}/role": role} if role else {}
    if owner:
        said[f"{AWS_PROVIDER_TAG}/cluster/{owner}"] = "owned"
    found = {"GroupId": f"sg-{name}", "GroupName": name, "VpcId": "vpc-1", "Tags": tags(**said)}
    return {**found, "IpPermissions": list(rules)}


def balancer(**fields: Any) -> JsonObject:
    return {
        "LoadBalancerName": "api",
        "LoadBalancerArn": f"{ARN}/net/api/1",
        "DNSName": "api.elb.example.org",
        "Scheme": "internal",
        "Type": "network",
        "VpcId": "vpc-1",
        "State": {"Code": "active"},
        **fields,
    }


def listeners(*ports: int) -> list[JsonObject]:
    return [{"Port": port} for port in ports]


OBSERVED = Observed(
    account=ACCOUNT,
    vpcs=[{"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16", "State": "available"}],
    subnets=[subnet("public", "a"), subnet("a", "a"), subnet("b", "b")],
    route_tables=[table("main", NAT_ROUTE), table("public", INTERNET_ROUTE, subnets=("public",))],
    internet_gateways=[{"InternetGatewayId": "igw-1"}],
    nat_gateways=[{"NatGatewayId": "nat-1", "SubnetId": "subnet-public", "State": "available"}],
    zones=[{"ZoneName": f"{REGION}{zone}", "ZoneType": "availability-zone"} for zone in "abc"],
)


def decide(observed: Observed = OBSERVED, desired: Desired = WANTED, **spec: Any) -> Network:
    return decide_network({"spec": {"region": REGION, **spec}}, observed, desired)


def problem(observed: Observed = OBSERVED, desired: Desired = WANTED, **spec: Any) -> str:
    """Return the only problem."""
    (found,) = decide(observed, desired, **spec).problems
    return found


# Requests of an AWSCluster


def annotated(annotations: dict[str, str], region: str = REGION) -> JsonObject:
    metadata = {
        "name": "demo",
        "namespace": "x",
        "labels": {CLUSTER_NAME: "demo"},
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": {"region": region}}


def test_all_annotations_are_read() -> None:
    said = {
        AWS_VPC: "vpc-0a",
        AWS_SUBNET_TAGS: "tier=nodes, kubernetes.io/cluster/demo=",
        AWS_ZONES: "eu-west-1a, eu-west-1b",
        AWS_SECURITY_GROUPS: "node=sg-0a,controlplane=sg-0b",
        AWS_LOAD_BALANCER: "api",
        AWS_ACCOUNT: ACCOUNT,
    }
    assert desired_of(annotated(said)) == Desired(
        region=REGION,
        cluster="demo",
        vpc_id="vpc-0a",
        subnet_tags={"tier": "nodes", "kubernetes.io/cluster/demo": ""},
        zones=("eu-west-1a", "eu-west-1b"),
        groups={"node": "sg-0a", "controlplane": "sg-0b"},
        load_balancer=LoadBalancer("api"),
        account=ACCOUNT,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("api", LoadBalancer("api")),
        (f"{ARN}/net/api/1f", LoadBalancer("api", f"{ARN}/net/api/1f", REGION, ACCOUNT)),
        (f"{ARN}/app/api/1f", LoadBalancer("api", f"{ARN}/app/api/1f", REGION, ACCOUNT)),
        (f"{ARN}/api", LoadBalancer("api", "", REGION, ACCOUNT)),  # a classic one
    ],
)
def test_a_load_balancer_is_named_or_has_an_arn(value: str, expected: LoadBalancer) -> None:
    said = {AWS_VPC: "vpc-0a", AWS_LOAD_BALANCER: value}
    assert desired_of(annotated(said)).load_balancer == expected


@pytest.mark.parametrize(
    ("said", "finding"),
    [
        ({}, f"no annotation names the VPC; set {AWS_VPC} or {AWS_VPC_TAGS}"),
        ({AWS_VPC: "shop"}, f'annotation {AWS_VPC} is "shop"; it must be of the form vpc-'),
        ({AWS_VPC: "vpc-1", AWS_VPC_TAGS: "a=b"}, "are both set; keep one"),
        ({AWS_VPC_TAGS: "a"}, f'annotation {AWS_VPC_TAGS}: "a" is not of the form key=value'),
        ({AWS_VPC_TAGS: "a=1,a=2"}, f"annotation {AWS_VPC_TAGS}: a is set more than once"),
        ({AWS_SECURITY_GROUPS: "nodes=sg-1"}, "the role must be one of bastion, node"),
        ({AWS_SECURITY_GROUPS: "node=default"}, "the id must be of the form sg-"),
        ({AWS_LOAD_BALANCER: "arn:aws:s3:::x"}, "which is not a load balancer"),
        ({AWS_LOAD_BALANCER: f"{ARN}/gwy/api/1f"}, "gateway load balancer, which cannot serve"),
        ({AWS_ACCOUNT: "mine"}, f'annotation {AWS_ACCOUNT} is "mine"'),
    ],
)
def test_an_invalid_annotation_is_one_finding(said: dict[str, str], finding: str) -> None:
    complete = said if {AWS_VPC, AWS_VPC_TAGS} & said.keys() or not said else {AWS_VPC: "vpc-1"}
    with pytest.raises(SourceProblem) as raised:
        desired_of(annotated({**complete, **said}))
    (found,) = raised.value.problems
    assert finding in found
    assert raised.value.reason == "SourceInvalid"


def test_a_missing_region_is_an_error() -> None:
    with pytest.raises(SourceProblem, match=r"spec\.region is empty"):
        desired_of(annotated({AWS_VPC: "vpc-1"}, region=""))


def test_only_aws_clusters_with_the_annotation_ask_aws() -> None:
    obj: JsonObject = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "AWSCluster",
        "metadata": {"annotations": {SOURCE: "aws"}},
    }
    assert asks_aws(obj)
    assert not asks_aws({**obj, "kind": "OtherCluster"})
    assert not asks_aws({**obj, "metadata": {"annotations": {SOURCE: "configmap/aws"}}})


# Facts


def test_subnets_without_a_table_use_the_main_one() -> None:
    found = {each.id: each for each in subnets_of(OBSERVED)}
    assert found["subnet-a"].table == found["subnet-b"].table == "rtb-main"
    assert found["subnet-public"].table == "rtb-public"


@pytest.mark.parametrize(
    ("routes", "is_public"),
    [
        ([INTERNET_ROUTE], True),
        ([{"DestinationIpv6CidrBlock": "::/0", "GatewayId": "igw-1"}], True),
        ([{**INTERNET_ROUTE, "DestinationCidrBlock": "192.0.2.0/24"}], False),
        ([NAT_ROUTE], False),
        ([{"DestinationIpv6CidrBlock": "::/0", "EgressOnlyInternetGatewayId": "eigw-1"}], False),
        ([{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "vgw-1"}], False),
        ([], False),
    ],
)
def test_a_subnet_is_public_if_its_default_route_leads_to_an_internet_gateway(
    routes: list[JsonObject], is_public: bool
) -> None:
    observed = replace(OBSERVED, subnets=[subnet("a", "a")], route_tables=[table("main", *routes)])
    (found,) = subnets_of(observed)
    assert found.is_public is is_public


@pytest.mark.parametrize(
    ("ports", "expected"),
    [((6443,), 6443), ((443, 6443), 6443), ((80, 443), 443), ((8443,), 8443), ((80, 8443), None)],
)
def test_the_port_of_the_api_server_is_the_usual_or_the_only_one(
    ports: tuple[int, ...], expected: int | None
) -> None:
    found = balancer_of(replace(OBSERVED, load_balancers=[balancer()], listeners=listeners(*ports)))
    assert found is not None
    assert (found.endpoint.port if found.endpoint else None) == expected


# Problems


def test_a_complete_network_has_no_problems() -> None:
    assert decide().problems == ()


def test_without_subnets_that_is_the_only_finding() -> None:
    assert problem(replace(OBSERVED, subnets=[])).startswith("vpc-1 has no subnets; create")


def test_a_zone_with_public_subnets_only_is_a_finding_unless_it_is_left_out() -> None:
    public = table("public", INTERNET_ROUTE, subnets=("public", "c"))
    observed = replace(
        OBSERVED,
        subnets=[*OBSERVED.subnets, subnet("c", "c")],
        route_tables=[table("main", NAT_ROUTE), public],
    )
    assert problem(observed).startswith("zone eu-west-1c has no private subnet in vpc-1; create")
    desired = replace(WANTED, zones=("eu-west-1a", "eu-west-1b"))
    assert decide(observed, desired).problems == ()


def test_a_requested_zone_that_is_unknown_or_has_no_subnets_is_a_finding() -> None:
    desired = replace(WANTED, zones=("eu-west-1a", "eu-west-1c"))
    assert problem(desired=desired).startswith("zone eu-west-1c has no private subnet")
    desired = replace(WANTED, zones=("eu-west-1a", "us-east-1a"))
    assert problem(desired=desired).startswith("zone us-east-1a is not in region eu-west-1")


def test_edge_zones_are_used_only_on_request() -> None:
    edge = {"ZoneName": f"{REGION}-edge-1", "ZoneType": "local-zone"}
    observed = replace(
        OBSERVED,
        subnets=[*OBSERVED.subnets, subnet("edge", "-edge-1")],
        zones=[*OBSERVED.zones, edge],
    )
    assert len(decide(observed).failure_domains) == 2
    assert {each["id"]: each["zoneType"] for each in subnets_in(decide(observed))}[
        "subnet-edge"
    ] == "local-zone"
    desired = replace(WANTED, zones=(f"{REGION}-edge-1",))
    assert [domain.name for domain in decide(observed, desired).failure_domains] == [
        f"{REGION}-edge-1"
    ]


@pytest.mark.parametrize(
    "route",
    [
        {"DestinationCidrBlock": "0.0.0.0/0", "TransitGatewayId": "tgw-1", "State": "active"},
        {"DestinationCidrBlock": "192.0.2.0/24", "TransitGatewayId": "tgw-1", "State": "active"},
        {"DestinationPrefixListId": "pl-1", "VpcPeeringConnectionId": "pcx-1"},
        {"DestinationCidrBlock": "0.0.0.0/0", "NetworkInterfaceId": "eni-1", "InstanceId": "i-1"},
    ],
)
def test_any_route_to_the_internet_is_accepted(route: JsonObject) -> None:
    public = table("public", INTERNET_ROUTE, subnets=("public",))
    assert decide(replace(OBSERVED, route_tables=[table("main", route), public])).problems == ()


@pytest.mark.parametrize(
    ("route", "finding"),
    [
        (None, "subnet subnet-a in eu-west-1a has no route out"),
        (
            {"DestinationPrefixListId": "pl-1", "GatewayId": "vpce-1"},
            "subnet subnet-a in eu-west-1a has no route out",
        ),
        (
            {**NAT_ROUTE, "State": "blackhole"},
            (
                "subnet subnet-a in eu-west-1a: the route to 0.0.0.0/0 through nat-1 in route "
                "table rtb-main is a blackhole"
            ),
        ),
        (
            {**NAT_ROUTE, "NatGatewayId": "nat-2"},
            "subnet subnet-a in eu-west-1a has its route out through nat-2, which is failed",
        ),
    ],
    ids=["none", "endpoint", "blackhole", "failed"],
)
def test_a_private_subnet_needs_a_route_to_the_internet(
    route: JsonObject | None, finding: str
) -> None:
    public = table("public", INTERNET_ROUTE, subnets=("public",))
    failed = {"NatGatewayId": "nat-2", "SubnetId": "subnet-public", "State": "failed"}
    observed = replace(
        OBSERVED,
        subnets=OBSERVED.subnets[:2],
        route_tables=[table("main", *([route] if route else [])), public],
        nat_gateways=[*OBSERVED.nat_gateways, failed],
    )
    assert problem(observed).startswith(finding)


def test_security_groups_must_exist_in_the_vpc() -> None:
    desired = replace(WANTED, groups={"node": "sg-1", "lb": "sg-2", "bastion": "sg-3"})
    foreign = {**group("2"), "VpcId": "vpc-2"}
    observed = replace(OBSERVED, groups=[group("1")], foreign_groups=[foreign])
    elsewhere, missing = decide(observed, desired).problems
    assert elsewhere.startswith("security group sg-2 for lb is of vpc-2, not of vpc-1")
    assert missing.startswith("security group sg-3 for bastion does not exist")


@pytest.mark.parametrize(
    ("load_balancer", "finding"),
    [
        (balancer(VpcId="vpc-2"), "load balancer api is in vpc-2, not in vpc-1"),
        (balancer(State={"Code": "provisioning"}), "load balancer api is provisioning; wait"),
        (balancer(Type="gateway"), "load balancer api is a gateway load balancer"),
        (None, "load balancer api does not exist in region eu-west-1"),
    ],
    ids=["vpc", "state", "type", "none"],
)
def test_an_unusable_load_balancer_is_a_finding(
    load_balancer: JsonObject | None, finding: str
) -> None:
    found = [load_balancer] if load_balancer else []
    observed = replace(OBSERVED, load_balancers=found, listeners=listeners(6443))
    desired = replace(WANTED, load_balancer=LoadBalancer("api"))
    assert problem(observed, desired).startswith(finding)


@pytest.mark.parametrize(
    ("named", "finding"),
    [
        (LoadBalancer("api", "x", "us-east-1", ACCOUNT), "is in region us-east-1, but"),
        (LoadBalancer("api", "x", REGION, "210987654321"), "is of account 210987654321, but"),
    ],
    ids=["region", "account"],
)
def test_an_arn_must_have_the_same_region_and_account(named: LoadBalancer, finding: str) -> None:
    observed = replace(OBSERVED, load_balancers=[balancer()], listeners=listeners(6443))
    assert finding in problem(observed, replace(WANTED, load_balancer=named))


def test_ambiguous_ports_are_a_finding_unless_the_endpoint_is_given() -> None:
    observed = replace(OBSERVED, load_balancers=[balancer()], listeners=listeners(80, 8443))
    desired = replace(WANTED, load_balancer=LoadBalancer("api"))
    assert "listens on 80, 8443" in problem(observed, desired)
    given = {"host": "api.example.org", "port": 8443}
    assert decide(observed, desired, controlPlaneEndpoint=given).problems == ()


def test_credentials_of_another_account_are_a_finding() -> None:
    assert problem(desired=replace(WANTED, account="210987654321")).startswith(
        "the credentials are of account 123456789012, but the network must be in 210987654321"
    )


@pytest.mark.parametrize(
    ("vpcs", "said"),
    [([], "no VPC with tags Name=shop exists"), (["vpc-1", "vpc-2"], "several VPCs have tags")],
)
def test_tags_must_match_exactly_one_vpc(vpcs: list[str], said: str) -> None:
    desired = replace(WANTED, vpc_id="", vpc_tags={"Name": "shop"})
    with pytest.raises(SourceProblem, match=said) as raised:
        decide(Observed(ACCOUNT, [{"VpcId": vpc} for vpc in vpcs]), desired)
    assert raised.value.reason == "SourceNotFound"


# The desired spec


def subnets_in(network: Network) -> list[JsonObject]:
    found: list[JsonObject] = network.spec["network"]["subnets"]
    return found


def test_the_spec_has_all_fields_that_machines_need() -> None:
    vpc = {**OBSERVED.vpcs[0], "Tags": tags(Name="shop", **{"aws:cloudformation:stack": "x"})}
    observed = replace(OBSERVED, vpcs=[vpc], groups=[group("1", "node")])
    network = decide(observed).spec["network"]
    assert network["vpc"] == {
        "id": "vpc-1",
        "cidrBlock": "10.0.0.0/16",
        "internetGatewayId": "igw-1",
        "tags": {"Name": "shop"},
    }
    assert network["securityGroupOverrides"] == {"node": "sg-1"}
    assert [(each["id"], each["isPublic"]) for each in network["subnets"]] == [
        ("subnet-a", False),
        ("subnet-public", True),
        ("subnet-b", False),
    ]
    # The provider looks for a NAT gateway at the public subnet in which it is.
    assert [each.get("natGatewayId") for each in network["subnets"]] == [None, "nat-1", None]


@given(
    st.permutations(OBSERVED.subnets),
    st.permutations(OBSERVED.route_tables),
    st.permutations([group("1", "node"), group("2", "lb"), group("3")]),
)
def test_the_order_of_responses_does_not_matter(
    subnets: list[JsonObject], tables: list[JsonObject], groups: list[JsonObject]
) -> None:
    first = replace(OBSERVED, groups=[group("1", "node"), group("2", "lb"), group("3")])
    other = replace(OBSERVED, subnets=subnets, route_tables=tables, groups=groups)
    assert decide(first) == decide(other)


def test_a_zone_is_for_control_planes_unless_all_its_private_subnets_are_excluded() -> None:
    no = {"Tags": tags(**{AWS_CONTROL_PLANE_TAG: "false"})}
    subnets = [subnet("a", "a", **no), subnet("a2", "a"), subnet("b", "b", **no)]
    found = decide(replace(OBSERVED, subnets=subnets)).failure_domains
    assert [(each.name, each.control_plane) for each in found] == [
        ("eu-west-1a", True),
        ("eu-west-1b", False),
    ]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([group("1", "node")], {"node": "sg-1"}),
        ([group("1", "node"), group("2", "node", "demo")], {"node": "sg-2"}),
        ([group("1", "node", "other")], {}),
        ([group("1", "common"), group("2")], {}),
    ],
    ids=["shared", "own", "another's", "no role"],
)
def test_security_groups_are_found_by_the_providers_tags(
    groups: list[JsonObject], expected: dict[str, str]
) -> None:
    network = decide(replace(OBSERVED, groups=groups))
    assert network.problems == ()
    assert network.spec["network"].get("securityGroupOverrides", {}) == expected


def test_several_groups_for_a_role_are_a_finding_until_one_is_named() -> None:
    observed = replace(OBSERVED, groups=[group("1", "node"), group("2", "node")])
    assert problem(observed).startswith("security groups sg-1, sg-2 are all tagged for node")
    network = decide(observed, replace(WANTED, groups={"node": "sg-2"}))
    assert network.problems == ()
    assert network.spec["network"]["securityGroupOverrides"] == {"node": "sg-2"}


def test_the_status_has_only_existing_groups_and_the_load_balancer() -> None:
    observed = replace(
        OBSERVED,
        groups=[group("1", "node")],
        load_balancers=[balancer()],
        listeners=listeners(6443),
    )
    status = decide(observed).status["networkStatus"]
    assert status["apiServerElb"] == {
        "name": "api",
        "dnsName": "api.elb.example.org",
        "scheme": "internal",
    }
    assert status["securityGroups"]["node"]["name"] == "1"
    gone = decide_network({**OBJ, "status": {"networkStatus": status}}, OBSERVED, WANTED)
    assert gone.status == {"networkStatus": {"apiServerElb": None, "securityGroups": None}}
    assert decide().status == {}


def owned_endpoint(host: str, port: int) -> JsonObject:
    fields: JsonObject = {"f:spec": {"f:controlPlaneEndpoint": {"f:host": {}, "f:port": {}}}}
    metadata = {"managedFields": [{"manager": MANAGER, "fieldsV1": fields}]}
    return {
        "metadata": metadata,
        "spec": {"region": REGION, "controlPlaneEndpoint": {"host": host, "port": port}},
    }


def test_our_endpoint_is_kept_even_if_the_load_balancer_changes() -> None:
    obj = owned_endpoint("old.example.org", 6443)
    gone = decide_network(obj, OBSERVED, WANTED)
    assert str(gone.endpoint) == "old.example.org:6443"
    observed = replace(OBSERVED, load_balancers=[balancer()], listeners=listeners(6443))
    moved = decide_network(obj, observed, replace(WANTED, load_balancer=LoadBalancer("api")))
    assert str(moved.endpoint) == "old.example.org:6443"
    (found,) = moved.problems
    assert "now at api.elb.example.org:6443, but spec.controlPlaneEndpoint is old.example" in found


def test_another_endpoint_of_a_user_is_not_a_problem_of_the_network() -> None:
    observed = replace(OBSERVED, load_balancers=[balancer()], listeners=listeners(6443))
    desired = replace(WANTED, load_balancer=LoadBalancer("api"))
    given = {"host": "mine.example.org", "port": 443}
    network = decide(observed, desired, controlPlaneEndpoint=given)
    assert str(network.endpoint) == "api.elb.example.org:6443"
    assert network.problems == ()


def test_a_changed_vpc_is_refused_before_any_field_is_set() -> None:
    with pytest.raises(SourceProblem, match=r"spec\.network\.vpc\.id is vpc-2") as raised:
        decide(network={"vpc": {"id": "vpc-2"}})
    assert raised.value.reason == "Conflict"


# Checks


def rule(protocol: str, *ports: int, **ranges: Any) -> JsonObject:
    found: JsonObject = {"IpProtocol": protocol, **ranges}
    if ports:
        found |= {"FromPort": ports[0], "ToPort": ports[-1]}
    return found


EVERYBODY = {"IpRanges": [{"CidrIp": "192.0.2.0/24"}, {"CidrIp": "0.0.0.0/0"}]}
EVERYBODY_6 = {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (rule("tcp", 22, **EVERYBODY), "lets tcp 22 in from 0.0.0.0/0"),
        (rule("udp", 30000, 32767, **EVERYBODY_6), "lets udp 30000-32767 in from ::/0"),
        (rule("-1", **EVERYBODY), "lets everything in from 0.0.0.0/0"),
        (rule("icmp", -1, **EVERYBODY), "lets icmp in from 0.0.0.0/0"),
    ],
)
def test_rules_open_to_the_world_are_listed(found: JsonObject, said: str) -> None:
    observed = replace(OBSERVED, groups=[group("1", "node", "", found)])
    (warning,) = open_rules(observed, WANTED)
    assert warning.startswith(f"security group sg-1 for node {said}")
    assert decide(observed).problems == ()


def test_restricted_rules_and_load_balancer_groups_are_not_listed() -> None:
    some = rule("tcp", 22, IpRanges=[{"CidrIp": "10.0.0.0/8"}], UserIdGroupPairs=[{}])
    everybody = rule("tcp", 6443, **EVERYBODY)
    groups = [group("1", "node", "", some), group("2", "apiserver-lb", "", everybody)]
    assert open_rules(replace(OBSERVED, groups=groups), WANTED) == []


def template(spec: JsonObject) -> JsonObject:
    return {
        "kind": "AWSMachineTemplate",
        "metadata": {"name": "workers", "namespace": "x"},
        "spec": {"template": {"spec": spec}},
    }


def test_machines_without_their_own_groups_are_listed() -> None:
    named = template({"additionalSecurityGroups": [{"id": "sg-1"}]})
    filtered = template({"additionalSecurityGroups": [{"filters": [{"name": "x"}]}]})
    bare: list[JsonObject] = [template({}), template({"additionalSecurityGroups": []})]
    machine: JsonObject = {"kind": "AWSMachine", "metadata": {"name": "m"}, "spec": {}}
    found = templates_without_groups([named, filtered, *bare, machine])
    assert len(found) == 3
    assert found[0].startswith("AWSMachineTemplate x/workers names no security group")
    assert found[0].endswith("set spec.template.spec.additionalSecurityGroups")
    assert found[2].endswith("set spec.additionalSecurityGroups")


def test_the_policy_only_allows_describe_operations() -> None:
    (statement,) = iam_policy()["Statement"]
    assert statement["Effect"] == "Allow"
    assert all(action.partition(":")[2].startswith("Describe") for action in statement["Action"])


# IPv6


BLOCK = "2001:db8:0:100::/56"
RANGE = "2001:db8:0:100::/64"


def associated(block: str, state: str = "associated", **more: str) -> list[JsonObject]:
    return [{"Ipv6CidrBlock": block, "Ipv6CidrBlockState": {"State": state}, **more}]


DUAL = replace(
    OBSERVED,
    vpcs=[
        {**OBSERVED.vpcs[0], "Ipv6CidrBlockAssociationSet": associated(BLOCK, Ipv6Pool="Amazon")}
    ],
    subnets=[
        OBSERVED.subnets[0],
        {**OBSERVED.subnets[1], "Ipv6CidrBlockAssociationSet": associated(RANGE)},
        {**OBSERVED.subnets[2], "Ipv6CidrBlockAssociationSet": associated(RANGE, "disassociated")},
    ],
    egress_only_gateways=[{"EgressOnlyInternetGatewayId": "eigw-1"}],
)
WITH_IPV6 = replace(WANTED, ipv6=True)


def test_ipv6_is_used_if_the_object_says_so() -> None:
    said = annotated({AWS_VPC: "vpc-0a"})
    assert not desired_of(said).ipv6
    said["spec"]["network"] = {"vpc": {"ipv6": {}}}
    assert desired_of(said).ipv6


def test_the_ipv6_of_the_network_is_filled() -> None:
    network = decide(DUAL, WITH_IPV6).spec["network"]

    assert network["vpc"]["ipv6"] == {
        "cidrBlock": BLOCK,
        "poolId": "Amazon",
        "egressOnlyInternetGatewayId": "eigw-1",
    }
    found = {
        each["id"]: (each.get("isIpv6"), each.get("ipv6CidrBlock")) for each in network["subnets"]
    }
    assert found == {
        "subnet-public": (None, None),
        "subnet-a": (True, RANGE),
        "subnet-b": (None, None),
    }


def test_a_pool_of_ipam_replaces_the_block() -> None:
    spec = {"network": {"vpc": {"ipv6": {"ipamPool": {"id": "ipam-pool-1"}}}}}

    found = decide(DUAL, WITH_IPV6, **spec).spec["network"]["vpc"]["ipv6"]

    assert found == {"egressOnlyInternetGatewayId": "eigw-1"}


def test_ipv6_without_a_block_is_a_problem() -> None:
    assert "vpc-1 has no IPv6 block" in problem(OBSERVED, WITH_IPV6)


def test_unused_ipv6_is_a_hint_and_nothing_is_filled() -> None:
    """Older versions of the AWS provider refuse any IPv6 of an AWSCluster."""
    network = decide(DUAL)

    assert network.problems == ()
    assert "ipv6" not in str(network.spec).lower()
    (hint,) = unused_ipv6(DUAL, WANTED)
    assert hint == (
        f"vpc-1 has the IPv6 block {BLOCK}, which machines do not use; to use it, set "
        "spec.network.vpc.ipv6 to {}"
    )
    assert unused_ipv6(DUAL, WITH_IPV6) == unused_ipv6(OBSERVED, WANTED) == []


async def test_only_allowed_namespaces_use_the_credentials() -> None:
    settings = AwsSettings(namespaces=("y", "z"))
    async with AwsSource(cast("Client", None), settings) as source:
        for read in (source.describe, source.warnings):
            with pytest.raises(SourceProblem, match="in namespace x may not use") as raised:
                await read(annotated({AWS_VPC: "vpc-0a"}))
            assert raised.value.reason == "CredentialsInsufficient"
