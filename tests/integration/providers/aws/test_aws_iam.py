"""Permissions of nodes in AWS: spec 30 §10.3, with moto as AWS."""

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.flow.picture import Fate
from pergola.providers.aws.resources import iam
from pergola.providers.aws.resources.iam import policies
from pergola.providers.aws.state import (
    INSTANCE_PROFILE_NAME,
    ROLE_ARN,
    ROLE_NAME,
    ROLE_POLICY_NAME,
)
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import ACCOUNT
from pergola.sandbox.aws.world import Network
from tests.support.aws.steps import TECHNICAL_ID, StepsOf

NODES = f"{TECHNICAL_ID}-nodes"


@pytest.fixture
async def cluster(client: AwsClient) -> StepsOf:
    """Return a cluster whose subnets are user-provided."""
    return StepsOf.byo(client, await Network.create(client))


async def policy(client: AwsClient) -> JsonObject:
    answer = await client.call("iam", "GetRolePolicy", RoleName=NODES, PolicyName=NODES)
    document: JsonObject = answer["PolicyDocument"]
    return document


async def put_policy(client: AwsClient, text: str) -> None:
    await client.call("iam", "PutRolePolicy", RoleName=NODES, PolicyName=NODES, PolicyDocument=text)


def allowed(document: JsonObject) -> set[str]:
    return {action for statement in document["Statement"] for action in statement["Action"]}


async def test_nodes_get_an_instance_profile_with_a_role_and_a_policy(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    aws.writes()

    await cluster.ensure(iam.steps)

    assert sorted(aws.writes()) == [
        "iam AddRoleToInstanceProfile",
        "iam CreateInstanceProfile",
        "iam CreateRole",
        "iam PutRolePolicy",
    ]
    profile = await client.call("iam", "GetInstanceProfile", InstanceProfileName=NODES)
    (role,) = profile["InstanceProfile"]["Roles"]
    assert (role["RoleName"], role["Path"]) == (NODES, "/")
    assert policies.same_policy(role["AssumeRolePolicyDocument"], policies.TRUST)
    assert allowed(await policy(client)) == {
        "ec2:DescribeInstances",
        "ecr:GetAuthorizationToken",
        "ecr:BatchCheckLayerAvailability",
        "ecr:GetDownloadUrlForLayer",
        "ecr:GetRepositoryPolicy",
        "ecr:DescribeRepositories",
        "ecr:ListImages",
        "ecr:BatchGetImage",
    }
    assert cluster.saved[ROLE_ARN] == f"arn:aws:iam::{ACCOUNT}:role/{NODES}"
    for key in (ROLE_NAME, INSTANCE_PROFILE_NAME, ROLE_POLICY_NAME):
        assert cluster.saved[key] == NODES


@pytest.mark.parametrize("is_new", [True, False])
async def test_the_role_has_the_permissions_boundary_of_the_operator(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf, *, is_new: bool
) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/nodes"
    if not is_new:
        await cluster.ensure(iam.steps)
    cluster.want(permissions_boundary=boundary)
    aws.writes()

    await cluster.ensure(iam.steps)

    expected = "iam CreateRole" if is_new else "iam PutRolePermissionsBoundary"
    assert expected in aws.writes()
    answer = await client.call("iam", "GetRole", RoleName=NODES)
    assert answer["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    await cluster.ensure(iam.steps)
    assert aws.writes() == []


async def test_a_second_run_writes_nothing(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    await cluster.ensure(iam.steps)
    aws.writes()

    await cluster.ensure(iam.steps)

    assert aws.writes() == []
    plans = await cluster.plan(iam.steps)
    assert {note.fate for note in plans.values()} == {Fate.KEEP}


async def test_an_equivalent_policy_with_different_notation_is_not_written(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    await cluster.ensure(iam.steps)
    document = policies.role_policy(cluster.desired)
    document["Statement"].reverse()
    document["Statement"][-1]["Action"] = "ec2:DescribeInstances"
    await put_policy(client, orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    aws.writes()

    await cluster.ensure(iam.steps)

    assert aws.writes() == []


async def test_a_policy_with_a_different_meaning_is_written_again(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    await cluster.ensure(iam.steps)
    document = policies.role_policy(cluster.desired)
    document["Statement"][0]["Effect"] = "Deny"
    await put_policy(client, orjson.dumps(document).decode())
    aws.writes()

    await cluster.ensure(iam.steps)

    assert aws.writes() == ["iam PutRolePolicy"]


@pytest.mark.parametrize(
    ("config", "present", "absent"),
    [
        ({"enableECRAccess": True}, "ecr:BatchGetImage", "elasticfilesystem:TagResource"),
        ({"enableECRAccess": False}, "ec2:DescribeInstances", "ecr:BatchGetImage"),
        (
            {"elasticFileSystem": {"enabled": True, "id": "fs-1"}},
            "elasticfilesystem:TagResource",
            "elasticfilesystem:DeleteFileSystem",
        ),
    ],
)
async def test_the_permissions_of_nodes_follow_the_config(
    client: AwsClient, cluster: StepsOf, config: JsonObject, present: str, absent: str
) -> None:
    cluster.configure(**config)

    await cluster.ensure(iam.steps)

    actions = allowed(await policy(client))
    assert present in actions
    assert absent not in actions


async def test_foreign_principals_are_removed_from_the_trust_policy(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    await cluster.ensure(iam.steps)
    trust = orjson.dumps(policies.TRUST).decode().replace("ec2.amazonaws", "lambda.amazonaws")
    await client.call("iam", "UpdateAssumeRolePolicy", RoleName=NODES, PolicyDocument=trust)
    aws.writes()

    await cluster.ensure(iam.steps)

    assert aws.writes() == ["iam UpdateAssumeRolePolicy"]


async def test_a_foreign_role_in_the_profile_is_replaced(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    await cluster.ensure(iam.steps)
    await client.call(
        "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=NODES, RoleName=NODES
    )
    await client.call(
        "iam",
        "CreateRole",
        RoleName="other",
        AssumeRolePolicyDocument=orjson.dumps(policies.TRUST).decode(),
    )
    await client.call(
        "iam", "AddRoleToInstanceProfile", InstanceProfileName=NODES, RoleName="other"
    )
    aws.writes()

    await cluster.ensure(iam.steps)

    assert aws.writes() == ["iam RemoveRoleFromInstanceProfile", "iam AddRoleToInstanceProfile"]


async def test_new_resources_that_are_not_visible_are_awaited(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    aws.hide(3)
    aws.fail("AddRoleToInstanceProfile", "NoSuchEntity", status=404)
    aws.fail("PutRolePolicy", "NoSuchEntity", status=404)

    await cluster.ensure(iam.steps)
    aws.hide(0)

    profile = await client.call("iam", "GetInstanceProfile", InstanceProfileName=NODES)
    assert [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]] == [NODES]


async def test_resources_are_adopted_if_the_answer_to_their_creation_was_lost(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    aws.before("CreateRole", lambda _: _create_role(client))
    await cluster.ensure(iam.steps)

    assert cluster.saved[ROLE_NAME] == NODES


async def _create_role(client: AwsClient) -> None:
    trust = orjson.dumps(policies.TRUST).decode()
    await client.call("iam", "CreateRole", RoleName=NODES, AssumeRolePolicyDocument=trust)
