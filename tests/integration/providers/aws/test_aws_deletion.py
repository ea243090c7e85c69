"""Deletion: which resources are removed and which are kept, and in which order (spec 30 §9)."""

import re
from collections.abc import AsyncIterator

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.flow import FlowFailed, State
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.run import foresee
from pergola.providers.aws.observe import observe
from pergola.providers.aws.resources.removal import LONG_POLLS
from pergola.providers.aws.resources.step import Work
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import Network, everything, managed_config, tags_in, without_tags
from tests.support.aws.flows import Flows, MortalAws, creation, deletion
from tests.support.aws.picture import differences
from tests.support.aws.steps import PUBLIC_KEY, TECHNICAL_ID, read_config
from tests.support.documented.symptoms import symptom

REGION = "eu-west-1"
CLUSTER_TAG = f"kubernetes.io/cluster/{TECHNICAL_ID}"
OTHER_TAG = "kubernetes.io/cluster/shoot--garden--other"


@pytest.fixture
async def client(mortal: MortalAws) -> AsyncIterator[AwsClient]:
    async with mortal.client(REGION, retry=QUICK) as client:
        yield client


def desired(config: JsonObject) -> Desired:
    return Desired(
        technical_id=TECHNICAL_ID,
        region=REGION,
        config=read_config(config),
        node_range="10.180.0.0/16",
        shoot_uid="0b7c0a3e-6f0b-4a57-8a9e-7c3c8f1d2e4f",
        ssh_public_key=PUBLIC_KEY,
    )


async def created(mortal: MortalAws, client: AwsClient, config: JsonObject) -> Flows:
    """Return a created cluster, excluding earlier contents of the account."""
    cluster = Flows(mortal, client, desired(config))
    await cluster.remember()
    await cluster.run(creation)
    mortal.taken()
    return cluster


async def in_a_vpc_of_the_user(
    mortal: MortalAws, client: AwsClient, **config: object
) -> tuple[Network, Flows]:
    """Return a cluster with managed subnets in an existing VPC."""
    network = await Network.create(client, zones=())
    await network.add_gateway()
    return network, await created(
        mortal, client, {**managed_config(REGION, vpc=network.id), **config}
    )


async def in_user_provided_subnets(
    mortal: MortalAws, client: AwsClient, *zones: str
) -> tuple[Network, str, Flows]:
    """Return a cluster that is about to use user-provided subnets."""
    network = await Network.complete(client, zones=zones)
    group = await network.security_group()
    return network, group, Flows(mortal, client, desired(network.config(group=group)))


async def planned(cluster: Flows) -> dict[str, Note]:
    """Return the plan of a deletion."""
    state = State(cluster.saved)
    snapshot = await observe(cluster.client, cluster.desired, state, for_deletion=True)
    work = Work(aws=cluster.client, desired=cluster.desired, state=state, snapshot=snapshot)
    return foresee(delete_steps(cluster.desired, state), work)


async def names_of(
    client: AwsClient, service: str, operation: str, items: str, name: str
) -> set[str]:
    return {each[name] for each in await client.pages(service, operation, items)}


async def group_of(client: AwsClient, vpc: str, name: str, **tags: str) -> str:
    answer = await client.call(
        "ec2",
        "CreateSecurityGroup",
        GroupName=name,
        Description=name,
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": as_list(tags)}],
    )
    group: str = answer["GroupId"]
    return group


async def classic(client: AwsClient, name: str, subnet: str, group: str = "", **tags: str) -> None:
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 30080}
    await client.call(
        "elb",
        "CreateLoadBalancer",
        LoadBalancerName=name,
        Listeners=[listener],
        Subnets=[subnet],
        SecurityGroups=[group] if group else [],
        Tags=as_list(tags),
    )


async def network_balancer(client: AwsClient, name: str, vpc: str, subnet: str, **tags: str) -> str:
    """Create a network load balancer with a target group without tags."""
    answer = await client.call(
        "elbv2",
        "CreateLoadBalancer",
        Name=name,
        Subnets=[subnet],
        Type="network",
        Tags=as_list(tags),
    )
    arn: str = answer["LoadBalancers"][0]["LoadBalancerArn"]
    target = await target_group(client, name, vpc)
    await client.call(
        "elbv2",
        "CreateListener",
        LoadBalancerArn=arn,
        Protocol="TCP",
        Port=80,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": target}],
    )
    return arn


async def target_group(client: AwsClient, name: str, vpc: str, **tags: str) -> str:
    more = {"Tags": as_list(tags)} if tags else {}
    answer = await client.call(
        "elbv2", "CreateTargetGroup", Name=name, Protocol="TCP", Port=30080, VpcId=vpc, **more
    )
    arn: str = answer["TargetGroups"][0]["TargetGroupArn"]
    return arn


def as_list(tags: dict[str, str]) -> list[JsonObject]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def of_owner(tag: str) -> dict[str, str]:
    return {tag: "owned"}


# Common rules


async def test_with_an_empty_state_there_is_nothing_to_do(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    there = await cluster.things()
    cluster.saved = {}
    mortal.taken()

    await cluster.run(deletion)

    assert mortal.writes() == []
    assert (await cluster.things()).keys() == there.keys()


async def test_all_created_resources_are_removed(mortal: MortalAws, client: AwsClient) -> None:
    cluster = await created(mortal, client, managed_config(REGION, zones=("a", "b")))

    await cluster.run(deletion)

    assert await cluster.things() == {}
    assert {key: value for key, value in cluster.saved.items() if "Suffix" not in key} == {
        keys.BALANCERS_DESTROYED: keys.TRUE
    }


async def test_a_second_deletion_writes_nothing(mortal: MortalAws, client: AwsClient) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    await cluster.run(deletion)
    mortal.taken()

    await cluster.run(deletion)

    assert mortal.writes() == []


async def test_resources_deleted_by_others_count_as_deleted(
    mortal: MortalAws, client: AwsClient
) -> None:
    config = managed_config(REGION)
    config["networks"]["vpc"]["gatewayEndpoints"] = ["s3"]
    cluster = await created(mortal, client, config)
    mortal.anticipate(
        "DeleteKeyPair",
        "DeleteInstanceProfile",
        "DeleteInternetGateway",
        "DeleteNatGateway",
        "DeleteRole",
        "DeleteRolePolicy",
        "DeleteRouteTable",
        "DeleteSecurityGroup",
        "DeleteSubnet",
        "DeleteVpc",
        "DeleteVpcEndpoints",
        "DetachInternetGateway",
        "ReleaseAddress",
    )

    await cluster.run(deletion)

    assert await cluster.things() == {}


async def test_recorded_resources_that_no_longer_exist_are_forgotten(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    saved = dict(cluster.saved)
    await cluster.run(deletion)
    cluster.saved = saved

    await cluster.run(deletion)

    assert keys.VPC not in cluster.saved


async def test_a_key_is_only_forgotten_once_its_resource_is_deleted(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    mortal.fail("DeleteSecurityGroup", "UnauthorizedOperation", status=403)

    with pytest.raises(FlowFailed, match='failed to "delete nodes security group"'):
        await cluster.run(deletion)
    kept = cluster.saved
    await cluster.run(deletion)

    assert keys.NODES_SECURITY_GROUP in kept
    assert keys.VPC in kept
    assert keys.KEY_PAIR not in kept
    assert await cluster.things() == {}


async def test_resources_that_were_never_recorded_are_found_by_their_tags(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    suffix = keys.zone_key("eu-west-1a", keys.SUFFIX)
    cluster.saved = {suffix: cluster.saved[suffix]}

    await cluster.run(deletion)

    assert await cluster.things() == {}


async def test_deleting_three_zones_takes_at_most_45_calls(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION, zones=("a", "b", "c")))

    await cluster.run(deletion)

    calls = mortal.taken()
    polls = calls.count("ec2 DescribeNatGateways") - 1
    assert await cluster.things() == {}
    assert len(calls) - polls <= 45


async def test_the_plan_of_a_deletion_lists_the_resources_to_delete(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    there = await planned(cluster)
    await cluster.run(deletion)
    gone = await planned(cluster)

    assert there["delete VPC"].why.startswith("vpc-")
    kept = {name for name, note in there.items() if note.fate is not Fate.DELETE}
    assert kept == {
        "delete EFS",
        "delete egress-only internet gateway",
        "delete gateway endpoints",
        "forget default security group",
    }
    assert not [name for name, note in gone.items() if note.fate is Fate.DELETE]


# Load balancers


async def test_load_balancers_and_their_groups_are_deleted_before_their_dependencies(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    vpc = cluster.saved[keys.VPC]
    subnet = cluster.saved[keys.zone_key("eu-west-1a", keys.SUBNET_PUBLIC)]
    group = await group_of(client, vpc, "k8s-elb-web", **of_owner(CLUSTER_TAG))
    await client.call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        GroupId=cluster.saved[keys.NODES_SECURITY_GROUP],
        IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}],
    )
    await classic(client, "web", subnet, group, **of_owner(CLUSTER_TAG))
    await network_balancer(client, "api", vpc, subnet, **of_owner(CLUSTER_TAG))
    await target_group(client, "forgotten", vpc, **of_owner(CLUSTER_TAG))
    mortal.taken()

    await cluster.run(deletion)

    writes = mortal.writes()
    last_balancer = max(n for n, call in enumerate(writes) if call.endswith("DeleteLoadBalancer"))
    first_group = writes.index("ec2 DeleteSecurityGroup")
    assert writes.count("elasticloadbalancing DeleteLoadBalancer") == 2
    assert writes.count("elasticloadbalancing DeleteTargetGroup") == 2
    assert last_balancer < writes.index("ec2 RevokeSecurityGroupIngress") < first_group
    assert first_group < writes.index("ec2 DeleteSubnet")
    assert await cluster.things() == {}


async def test_resources_of_other_clusters_in_a_shared_vpc_are_untouched(
    mortal: MortalAws, client: AwsClient
) -> None:
    network, cluster = await in_a_vpc_of_the_user(mortal, client)
    subnet = await network.add_subnet("public", "c")
    await classic(client, "other", subnet, **of_owner(OTHER_TAG))
    await classic(client, "shared", subnet, **{CLUSTER_TAG: "shared"})
    other = await network_balancer(client, "other", network.id, subnet, **of_owner(OTHER_TAG))
    groups = {
        await group_of(client, network.id, "other", **of_owner(OTHER_TAG)),
        await group_of(client, network.id, "both", **{CLUSTER_TAG: "shared", OTHER_TAG: "owned"}),
        await group_of(client, network.id, "mixed", **{CLUSTER_TAG: "x", "team": "owned"}),
    }

    await cluster.run(deletion)

    arns = await names_of(
        client, "elbv2", "DescribeLoadBalancers", "LoadBalancers", "LoadBalancerArn"
    )
    targets = await client.pages("elbv2", "DescribeTargetGroups", "TargetGroups")
    assert arns == {other}
    assert [each["TargetGroupName"] for each in targets] == ["other"]
    assert await names_of(
        client, "elb", "DescribeLoadBalancers", "LoadBalancerDescriptions", "LoadBalancerName"
    ) == {"other", "shared"}
    assert groups <= await names_of(
        client, "ec2", "DescribeSecurityGroups", "SecurityGroups", "GroupId"
    )


async def test_tags_of_load_balancers_are_requested_in_chunks_of_20(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    subnet = cluster.saved[keys.zone_key("eu-west-1a", keys.SUBNET_PUBLIC)]
    for number in range(21):
        await classic(client, f"web-{number}", subnet, **of_owner(CLUSTER_TAG))
    mortal.taken()

    await cluster.run(deletion)

    calls = mortal.taken()
    assert calls.count("elasticloadbalancing DescribeTags") == 2
    assert calls.count("elasticloadbalancing DeleteLoadBalancer") == 21


@pytest.mark.soak("aws")
async def test_load_balancers_are_searched_only_once(mortal: MortalAws, client: AwsClient) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    mortal.fail("DeleteVpc", "UnauthorizedOperation", status=403)
    with pytest.raises(FlowFailed):
        await cluster.run(deletion)
    mortal.taken()

    await cluster.run(deletion)

    assert "elasticloadbalancing DescribeLoadBalancers" not in mortal.taken()


@pytest.mark.soak("aws")
async def test_a_group_named_in_rules_of_the_user_is_reported_with_the_command_that_removes_it(
    mortal: MortalAws, client: AwsClient
) -> None:
    network, group, cluster = await in_user_provided_subnets(mortal, client, "a")
    await cluster.run(creation)
    await network.tag(group, **of_owner(CLUSTER_TAG))
    balancer = await group_of(client, network.id, "k8s-elb-web", **of_owner(CLUSTER_TAG))
    permission = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": balancer}]}]
    rule = {"GroupId": group, "IpPermissions": permission}
    await client.call("ec2", "AuthorizeSecurityGroupIngress", **rule)
    mortal.taken()

    with pytest.raises(FlowFailed) as caught:
        await cluster.run(deletion)
    refused = mortal.writes()
    await client.call("ec2", "RevokeSecurityGroupIngress", **rule)
    await cluster.run(deletion)

    assert f"revoke-security-group-ingress --group-id {group}" in str(caught.value)
    assert re.search(symptom("A security group cannot be deleted"), str(caught.value))
    assert balancer in str(caught.value)
    assert "ec2 DeleteSecurityGroup" not in refused
    assert "ec2 RevokeSecurityGroupIngress" not in refused
    groups = await names_of(client, "ec2", "DescribeSecurityGroups", "SecurityGroups", "GroupId")
    assert group in groups
    assert balancer not in groups


# Managed zones


@pytest.mark.soak("aws")
async def test_a_user_provided_vpc_is_kept_with_its_gateway_and_options(
    mortal: MortalAws, client: AwsClient
) -> None:
    before = await everything(client)
    network, cluster = await in_a_vpc_of_the_user(mortal, client)

    await cluster.run(deletion)

    assert await cluster.things() == {}
    assert await cluster.lost() == set()
    after = await everything(client)
    assert f"InternetGateways/{network.gateway}" in after.keys() - before.keys()


@pytest.mark.soak("aws")
async def test_a_user_provided_elastic_ip_stays_allocated(
    mortal: MortalAws, client: AwsClient
) -> None:
    address = (await client.call("ec2", "AllocateAddress", Domain="vpc"))["AllocationId"]
    config = managed_config(REGION)
    config["networks"]["zones"][0]["elasticIPAllocationID"] = address
    cluster = await created(mortal, client, config)

    await cluster.run(deletion)

    assert await cluster.things() == {}
    assert await names_of(client, "ec2", "DescribeAddresses", "Addresses", "AllocationId") == {
        address
    }


@pytest.mark.soak("aws")
async def test_the_resources_of_a_zone_are_deleted_in_order(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))

    await cluster.run(deletion)

    writes = mortal.writes()
    gateway = writes.index("ec2 DeleteNatGateway")
    assert gateway < writes.index("ec2 ReleaseAddress")
    assert gateway < writes.index("ec2 DeleteSubnet")
    assert writes.index("ec2 DeleteSubnet") < writes.index("ec2 DeleteRouteTable")


@pytest.mark.soak("aws")
async def test_nat_gateways_of_all_zones_are_awaited_together(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION, zones=("a", "b", "c")))
    mortal.gaps.nats.reads = 5
    mortal.taken()

    await cluster.run(deletion)

    assert mortal.taken().count("ec2 DescribeNatGateways") <= 1 + 5 + 3


@pytest.mark.soak("aws")
async def test_the_deletion_of_a_subnet_in_use_is_retried(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    mortal.fail("DeleteSubnet", "DependencyViolation", times=4)

    await cluster.run(deletion)

    assert await cluster.things() == {}


@pytest.mark.soak("aws")
async def test_a_subnet_that_remains_in_use_is_reported(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    mortal.fail("DeleteSubnet", "DependencyViolation", message="subnet has dependencies", times=99)

    with pytest.raises(FlowFailed) as caught:
        await cluster.run(deletion)
    mortal.heal()
    await cluster.run(deletion)

    assert 'failed to "delete subnets in eu-west-1a"' in str(caught.value)
    assert "subnet has dependencies" in str(caught.value)
    assert await cluster.things() == {}


@pytest.mark.soak("aws")
async def test_a_nat_gateway_that_stays_in_deleting_is_an_error_and_is_retried(
    mortal: MortalAws, client: AwsClient
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    mortal.gaps.nats.reads = LONG_POLLS + 5
    mortal.taken()

    with pytest.raises(FlowFailed, match="is still being deleted by AWS"):
        await cluster.run(deletion)
    first = mortal.writes()
    await cluster.run(deletion)

    assert "ec2 ReleaseAddress" not in first
    assert "ec2 DeleteNatGateway" not in mortal.writes()
    assert await cluster.things() == {}


@pytest.mark.soak("aws")
async def test_resources_that_are_only_shared_are_not_deleted(
    mortal: MortalAws, client: AwsClient
) -> None:
    network, cluster = await in_a_vpc_of_the_user(mortal, client)
    group = cluster.saved[keys.NODES_SECURITY_GROUP]
    subnet = cluster.saved[keys.zone_key("eu-west-1a", keys.SUBNET_INTERNAL)]
    table = cluster.saved[keys.zone_key("eu-west-1a", keys.ROUTE_TABLE)]
    for thing in (group, subnet, table):
        await network.tag(thing, **{CLUSTER_TAG: "shared"})

    await cluster.run(deletion)

    assert set(await cluster.things()) == {
        f"SecurityGroups/{group}",
        f"Subnets/{subnet}",
        f"RouteTables/{table}",
    }


# User-provided networks


@pytest.mark.soak("aws")
async def test_only_tags_of_roles_are_left_on_a_user_provided_network(
    mortal: MortalAws, client: AwsClient
) -> None:
    _, _, cluster = await in_user_provided_subnets(mortal, client, "a", "b", "c")
    await everything(client)  # subnets are pending at first
    before = await everything(client)
    await cluster.run(creation)
    mortal.taken()

    await cluster.run(deletion)

    after = await everything(client)
    added = {
        tag
        for name, tags in tags_in(after).items()
        for tag in tags.items() - tags_in(before).get(name, {}).items()
    }
    assert without_tags(after) == without_tags(before)
    assert added == {("kubernetes.io/role/elb", "1"), ("kubernetes.io/role/internal-elb", "1")}
    assert [call for call in mortal.writes() if call.startswith("ec2 Delete")].count(
        "ec2 DeleteSubnet"
    ) == 0


@pytest.mark.soak("aws")
async def test_the_next_deletion_completes_an_interrupted_removal_of_tags(
    mortal: MortalAws, client: AwsClient
) -> None:
    _, _, cluster = await in_user_provided_subnets(mortal, client, "a", "b", "c")
    for _ in range(2):
        await cluster.run(creation)
        created = cluster.saved
        await cluster.run(deletion)
        whole = await cluster.picture()
        cluster.saved = {}
    await cluster.run(creation)
    assert cluster.saved == created
    mortal.after("DeleteTags", lambda _: _expired(mortal))

    with pytest.raises(FlowFailed):
        await cluster.run(deletion)
    mortal.heal()
    await cluster.run(deletion)

    assert differences(await cluster.picture(), whole) == []


@pytest.mark.soak("aws")
async def test_a_managed_group_in_user_provided_subnets_is_removed(
    mortal: MortalAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    cluster = await created(mortal, client, network.config())

    await cluster.run(deletion)

    assert await cluster.things() == {}
    assert await cluster.lost() == set()


@pytest.mark.soak("aws")
def test_nothing_of_a_user_provided_network_is_listed_for_deletion() -> None:
    zones = [{"name": "eu-west-1a", "workersSubnetID": "subnet-0123456789abcdef0"}]
    config = managed_config(REGION, vpc="vpc-0123456789abcdef0")
    config["networks"]["zones"] = zones

    names = [step.name for step in delete_steps(desired(config), State({keys.VPC: "vpc-1"}))]

    assert not [name for name in names if name in ("delete VPC", "delete subnets in eu-west-1a")]
    assert "remove tags of subnets and route tables" in names


async def _expired(mortal: MortalAws) -> None:
    mortal.expire()


@pytest.mark.parametrize("count", [1, 5])
async def test_the_error_about_a_subnet_in_use_names_its_users(
    mortal: MortalAws, client: AwsClient, count: int
) -> None:
    cluster = await created(mortal, client, managed_config(REGION))
    (subnet,) = [name for key, name in cluster.saved.items() if key.endswith("/SubnetWorkers")]
    for number in range(count):
        await client.call(
            "ec2", "CreateNetworkInterface", SubnetId=subnet, Description=f"ELB app/web/{number}"
        )
    mortal.fail("DeleteSubnet", "DependencyViolation", times=100)

    with pytest.raises(FlowFailed) as failed:
        await cluster.run(deletion)

    text = str(failed.value)
    assert re.search(r"used by network interfaces eni-\w+ \(ELB app/web/\d\)", text)
    assert ("2 more; delete what they belong to" in text) is (count > 3)
