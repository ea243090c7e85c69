"""The extension's permissions in AWS: the table, compared with the code that uses them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import pergola.providers.aws
from pergola.cli.aws.iam_policy import iam_policy as command
from pergola.providers.aws.garden_iam_policy import Purpose, garden_iam_policy
from pergola.providers.aws.garden_iam_policy import operations as garden_operations
from pergola.providers.aws.iam_policy import Feature, Mode, actions, iam_policy

ROOT = Path(pergola.providers.aws.__file__).parent
OPERATION = re.compile(
    r"(Abort|Add|Allocate|Associate|Attach|Authorize|Change|Create|Delete|Describe|Detach|Disassociate|Get|Head|Import"
    r"|List|Modify|Put|Release|Remove|Replace|Revoke|Run|Tag|Terminate|Untag|Update)[A-Z][A-Za-z0-9]+"
)
NO_OPERATIONS = {
    "AbortIncompleteMultipartUpload",
    "AssociatePublicIpAddress",
    "AuthorizeSecurityGroup",
    "CreateBucketConfiguration",
    "DeleteMarkers",
    "RevokeSecurityGroup",
    "TagDescriptions",
    "TagSpecifications",
}
"""Names of parameters, and parts of names."""
OF_AWS_ITSELF = {
    "CreateNetworkInterface",
    "DeleteNetworkInterface",
}
"""Actions that a service of AWS performs on behalf of its caller."""


def operations() -> Iterator[str]:
    """Yield the operations that the code names."""
    for file in ROOT.rglob("*.py"):
        if file.name in ("iam_policy.py", "garden_iam_policy.py"):
            continue
        nodes = ast.walk(ast.parse(file.read_text()))
        texts = (node.value for node in nodes if isinstance(node, ast.Constant))
        yield from (text for text in texts if isinstance(text, str) and OPERATION.fullmatch(text))


def all_of(mode: Mode) -> set[str]:
    return set(actions(mode, list(Feature)))


def names_of(several: set[str]) -> set[str]:
    return {action.partition(":")[2] for action in several}


def test_exactly_the_called_operations_are_allowed() -> None:
    used = set(operations()) - NO_OPERATIONS
    allowed = names_of(all_of(Mode.MANAGED) | all_of(Mode.BYO) | all_of(Mode.CHECK))
    allowed |= {each for purpose in Purpose for each in garden_operations(purpose)}

    assert used - allowed == set()
    assert allowed - OF_AWS_ITSELF - used == set()


def test_the_policy_for_checks_is_read_only() -> None:
    for action in all_of(Mode.CHECK):
        assert action.partition(":")[2].startswith(("Describe", "Get"))


def test_user_provided_networks_cannot_be_created_or_deleted() -> None:
    network = re.compile(
        r"ec2:(Create|Delete|Modify|Associate|Attach|Detach|Release|Replace)"
        r"(Vpc|Subnet$|RouteTable|Route$|InternetGateway|NatGateway|Dhcp|Address)"
    )

    assert [a for a in actions(Mode.BYO) if network.match(a)] == []
    assert [a for a in actions(Mode.MANAGED) if network.match(a)] != []


@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.BYO])
def test_node_identities_can_be_written_only_for_clusters(mode: Mode) -> None:
    policy = iam_policy(mode, names="shoot--garden--*", partition="aws-cn")

    for statement in policy["Statement"]:
        if any(a.startswith("iam:") and not a.startswith("iam:Get") for a in statement["Action"]):
            assert set(statement["Resource"]) <= {
                "arn:aws-cn:iam::*:role/shoot--garden--*-nodes",
                "arn:aws-cn:iam::*:instance-profile/shoot--garden--*-nodes",
            }


@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.BYO])
def test_permissions_are_given_only_to_roles_within_the_boundary(mode: Mode) -> None:
    boundary = "arn:aws:iam::123456789012:policy/nodes"

    policy = iam_policy(mode, boundary=boundary)

    giving = {"iam:CreateRole", "iam:PutRolePolicy", "iam:PutRolePermissionsBoundary"}
    statements = [s for s in policy["Statement"] if giving & set(s["Action"])]
    (statement,) = statements
    assert giving <= set(statement["Action"])
    assert statement["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    assert actions(mode) == actions(mode, [])
    free = {action for s in iam_policy(mode)["Statement"] for action in s["Action"]}
    assert {action for s in policy["Statement"] for action in s["Action"]} - free == {
        "iam:PutRolePermissionsBoundary"
    }


def test_foreign_tags_in_user_provided_networks_cannot_be_changed() -> None:
    tagging = [s for s in iam_policy(Mode.BYO)["Statement"] if "ec2:DeleteTags" in s["Action"]]

    assert len(tagging) == 1
    keys = tagging[0]["Condition"]["ForAllValues:StringLike"]["aws:TagKeys"]
    assert "kubernetes.io/cluster/*" in keys


def test_features_only_add_permissions() -> None:
    for mode in Mode:
        for feature in Feature:
            assert set(actions(mode)) <= set(actions(mode, [feature]))


def test_dns_records_can_be_changed_only_in_named_zones() -> None:
    policy = garden_iam_policy(Purpose.DNS, names="Z0123", partition="aws-cn")

    changing = [s for s in policy["Statement"] if "route53:ChangeResourceRecordSets" in s["Action"]]
    assert [s["Resource"] for s in changing] == [["arn:aws-cn:route53:::hostedzone/Z0123"]]


def test_backups_can_be_changed_only_in_named_buckets() -> None:
    policy = garden_iam_policy(Purpose.BACKUP, names="garden-*")

    resources = {each for s in policy["Statement"] for each in s["Resource"]}
    assert resources == {"arn:aws:s3:::garden-*", "arn:aws:s3:::garden-*/*"}


def test_the_command_prints_the_policy(capsys: pytest.CaptureFixture[str]) -> None:
    command(mode="byo", efs=True)

    printed = orjson.loads(capsys.readouterr().out)
    assert printed == iam_policy(Mode.BYO, [Feature.EFS])


@pytest.mark.parametrize("purpose", list(Purpose))
def test_the_command_prints_the_policies_of_a_garden(
    capsys: pytest.CaptureFixture[str], purpose: Purpose
) -> None:
    command(mode=purpose.value, names="own-*")

    printed = orjson.loads(capsys.readouterr().out)
    assert printed == garden_iam_policy(purpose, names="own-*")
