"""The nodes' security group: spec 30 §6, with moto as AWS."""

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.flow import FlowFailed, State
from pergola.flow.picture import Fate
from pergola.providers.aws.resources import security_group
from pergola.providers.aws.resources.security_group.ensure import NODES_GROUP
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    INGRESS,
    NFS,
    NODE_PORTS,
    TCP,
    UDP,
    Rule,
    permissions,
    rules_of,
)
from pergola.providers.aws.state import NODES_SECURITY_GROUP, VPC_IPV6_BLOCK
from pergola.providers.aws.status import provider_status
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network
from tests.support.aws.steps import TECHNICAL_ID, StepsOf

NODES = f"{TECHNICAL_ID}-nodes"


async def authorize(client: AwsClient, group: str, *rules: Rule) -> None:
    await client.call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        GroupId=group,
        IpPermissions=permissions(rules, INGRESS),
    )


async def revoke(client: AwsClient, group: str, *rules: Rule) -> None:
    await client.call(
        "ec2",
        "RevokeSecurityGroupIngress",
        GroupId=group,
        IpPermissions=permissions(rules, INGRESS),
    )


async def test_the_group_is_created_with_exactly_its_rules(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)

    await cluster.ensure(security_group.steps)

    group = (await cluster.groups())[NODES]
    own = group["GroupId"]
    assert rules_of(group) == {
        Rule(INGRESS, ALL, None, own),
        *(
            Rule(INGRESS, protocol, NODE_PORTS, peer)
            for protocol in (TCP, UDP)
            for peer in (EVERYWHERE, "10.180.1.0/24", "10.180.2.0/24")
        ),
        Rule(EGRESS, ALL, None, EVERYWHERE),
    }
    assert group["Description"] == "Security group for nodes"
    assert tags_of(group) == {f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned", "Name": NODES}
    assert cluster.saved[NODES_SECURITY_GROUP] == own


async def test_a_second_run_writes_nothing(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == []
    assert (await cluster.plan(security_group.steps))[NODES_GROUP].fate is Fate.KEEP


@pytest.mark.parametrize("families", [("IPv4",), ("IPv6",), ("IPv4", "IPv6")])
async def test_a_new_group_in_a_vpc_with_ipv6_is_exact_after_the_first_run(
    aws: CorrectedAws, client: AwsClient, families: tuple[str, ...]
) -> None:
    network = await Network.complete(client, zones=("a",), ipv6=True)
    cluster = StepsOf.byo(client, network)
    cluster.want(families=families)

    await cluster.ensure(security_group.steps)

    rules = rules_of((await cluster.groups())[NODES])
    out = {rule.peer for rule in rules if rule.direction == EGRESS}
    everywhere = {"IPv4": EVERYWHERE, "IPv6": EVERYWHERE_6}
    assert out == {everywhere[family] for family in families}
    aws.writes()
    await cluster.ensure(security_group.steps)
    assert aws.writes() == []


async def test_both_families_are_allowed_where_the_cluster_has_both(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client, zones=("a", "b"))
    cluster.want(families=("IPv4", "IPv6"))
    cluster.saved[VPC_IPV6_BLOCK] = "2600:1f18:1000:aa00::/56"

    await cluster.ensure(security_group.steps)

    rules = rules_of((await cluster.groups())[NODES])
    assert Rule(EGRESS, ALL, None, EVERYWHERE_6) in rules
    ranges = {rule.peer for rule in rules if rule.protocol == UDP and ":" in rule.peer}
    assert ranges == {
        EVERYWHERE_6,
        "2600:1f18:1000:aa01::/64",
        "2600:1f18:1000:aa02::/64",
        "2600:1f18:1000:aa04::/64",
        "2600:1f18:1000:aa05::/64",
    }


async def test_the_rule_for_elastic_fabric_adapters_is_added_and_removed_with_them(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    cluster.want(uses_efa=True)
    await cluster.ensure(security_group.steps)
    group = (await cluster.groups())[NODES]
    to_itself = Rule(EGRESS, ALL, None, group["GroupId"])
    assert to_itself in rules_of(group)
    assert (await cluster.plan(security_group.steps))[NODES_GROUP].fate is Fate.KEEP

    cluster.want(uses_efa=False)
    await cluster.ensure(security_group.steps)

    assert rules_of((await cluster.groups())[NODES]) == rules_of(group) - {to_itself}


async def test_obsolete_rules_are_revoked_after_new_ones_are_authorized(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    own = cluster.saved[NODES_SECURITY_GROUP]
    foreign, missing = Rule(INGRESS, TCP, (443, 443), "10.9.0.0/16"), Rule(INGRESS, ALL, None, own)
    await authorize(client, own, foreign)
    await revoke(client, own, missing)
    planned = (await cluster.plan(security_group.steps))[NODES_GROUP]
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == [
        "ec2 AuthorizeSecurityGroupIngress",
        "ec2 RevokeSecurityGroupIngress",
    ]
    rules = rules_of((await cluster.groups())[NODES])
    assert missing in rules
    assert foreign not in rules
    assert planned.fate is Fate.CHANGE
    assert f"allow {missing}" in planned.why
    assert f"no longer allow {foreign}" in planned.why


async def test_rules_with_prefix_lists_are_revoked_too(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    own = cluster.saved[NODES_SECURITY_GROUP]
    rule: JsonObject = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    lists = [{"PrefixListId": "pl-0123456789abcdef0", "Description": "offices"}]
    await client.call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        GroupId=own,
        IpPermissions=[{**rule, "PrefixListIds": lists}],
    )
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == ["ec2 RevokeSecurityGroupIngress"]
    assert not any(rule.is_opaque for rule in rules_of((await cluster.groups())[NODES]))


async def test_the_rule_of_a_bastion_is_kept(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    bastion = await cluster.network.security_group(f"{TECHNICAL_ID}-cli-x-bsg", rules=False)
    stranger = await cluster.network.security_group("stranger", rules=False)
    ssh = Rule(INGRESS, TCP, (22, 22), bastion)
    await authorize(client, cluster.saved[NODES_SECURITY_GROUP], ssh, ssh._replace(peer=stranger))

    await cluster.ensure(security_group.steps)

    rules = rules_of((await cluster.groups())[NODES])
    assert ssh in rules
    assert ssh._replace(peer=stranger) not in rules


async def test_tags_are_corrected_even_if_the_rules_are_correct(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    await client.call(
        "ec2",
        "CreateTags",
        Resources=[cluster.saved[NODES_SECURITY_GROUP]],
        Tags=[
            {"Key": f"kubernetes.io/cluster/{TECHNICAL_ID}", "Value": "1"},
            {"Key": "team", "Value": "x"},
        ],
    )
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == ["ec2 DeleteTags", "ec2 CreateTags"]
    tags = tags_of((await cluster.groups())[NODES])
    assert tags == {f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned", "Name": NODES}


async def test_a_group_missing_in_the_state_is_found_by_its_tags(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    before = cluster.saved.pop(NODES_SECURITY_GROUP)
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == []
    assert cluster.saved[NODES_SECURITY_GROUP] == before


async def test_two_groups_with_the_same_tags_are_refused(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    other = await cluster.network.security_group("other", rules=False)
    tags = {f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned", "Name": NODES}
    await cluster.network.tag(other, **tags)
    del cluster.saved[NODES_SECURITY_GROUP]
    before = await cluster.groups()

    with pytest.raises(FlowFailed, match="multiple matches"):
        await cluster.ensure(security_group.steps)

    assert await cluster.groups() == before


async def test_a_foreign_group_with_our_name_is_not_adopted(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.network.security_group(NODES)
    before = await cluster.groups()

    with pytest.raises(FlowFailed, match="delete or rename it"):
        await cluster.ensure(security_group.steps)

    assert await cluster.groups() == before


async def test_a_deleted_group_is_recreated(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    before = cluster.saved[NODES_SECURITY_GROUP]
    await client.call("ec2", "DeleteSecurityGroup", GroupId=before)

    await cluster.ensure(security_group.steps)

    assert (await cluster.groups())[NODES]["GroupId"] == cluster.saved[NODES_SECURITY_GROUP]
    assert cluster.saved[NODES_SECURITY_GROUP] != before


async def test_a_group_that_is_not_visible_is_not_created_twice(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    aws.hide(2)

    await cluster.ensure(security_group.steps)
    await cluster.ensure(security_group.steps)

    groups = await cluster.groups()
    assert len([name for name in groups if name == NODES]) == 1


async def test_a_concurrently_authorized_rule_is_not_an_error(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    own = cluster.saved[NODES_SECURITY_GROUP]
    ours = Rule(INGRESS, ALL, None, own)
    await revoke(client, own, ours)

    async def first(_: object) -> None:
        await authorize(client, own, ours)

    aws.before("AuthorizeSecurityGroupIngress", first)
    await cluster.ensure(security_group.steps)

    assert ours in rules_of((await cluster.groups())[NODES])


async def test_with_a_user_provided_group_no_group_is_created_and_no_rule_written(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.complete(client, zones=("a",))
    group = await network.security_group(rules=False)
    cluster = StepsOf.byo(client, network, group=group)
    before = await cluster.groups()
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == []
    assert await cluster.groups() == before
    status = provider_status(cluster.desired, State(cluster.saved))
    assert status["vpc"]["securityGroups"] == [{"purpose": "nodes", "id": group}]


async def test_a_user_provided_group_can_protect_managed_subnets(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    group = await cluster.network.security_group()
    cluster.configure(networks={**cluster.raw["networks"], "nodesSecurityGroupID": group})
    aws.writes()

    await cluster.ensure(security_group.steps)

    assert aws.writes() == []
    (step,) = security_group.steps(cluster.desired)
    assert step.skip == (f"security group {group} is user-provided, and managed by the user alone")


async def test_nodes_can_mount_a_file_system_from_their_subnets(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client, elasticFileSystem={"enabled": True})

    await cluster.ensure(security_group.steps)

    assert Rule(INGRESS, TCP, NFS, "10.180.0.0/24") in rules_of((await cluster.groups())[NODES])
