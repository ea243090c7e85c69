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
from tests.support.aws.authorization import Authorization

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
LONGEST = 6144
"""The characters of a managed policy that AWS accepts, without white space."""
LONG_NAME = "shoot--project123--name-with-16"
OF_CONTROLLERS = (Mode.CONTROL_PLANE, Mode.LOAD_BALANCER_CONTROLLER)
NODE = {"kubernetes.io/role/node": "1"}


def operations() -> Iterator[str]:
    """Yield the operations that the code names."""
    for file in ROOT.rglob("*.py"):
        if file.name == "garden_iam_policy.py" or file.parent.name == "iam_policy":
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
    def allowed(mode: Mode, features: list[Feature]) -> set[str]:
        statements = iam_policy(mode, features)["Statement"]
        return {action for statement in statements for action in statement["Action"]}

    for mode in Mode:
        for feature in Feature:
            assert allowed(mode, []) <= allowed(mode, [feature])


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


@pytest.mark.parametrize("mode", list(Mode))
def test_aws_accepts_the_length_of_each_policy(mode: Mode) -> None:
    boundary = "arn:aws-us-gov:iam::123456789012:policy/nodes"

    policy = iam_policy(
        mode, list(Feature), names=LONG_NAME, partition="aws-us-gov", boundary=boundary
    )

    assert len(orjson.dumps(policy)) <= LONGEST
    names = [statement["Sid"] for statement in policy["Statement"]]
    assert len(set(names)) == len(names)
    assert all(name.isalnum() for name in names)


@pytest.mark.parametrize("mode", OF_CONTROLLERS)
def test_policies_of_controllers_name_resources_of_the_partition(mode: Mode) -> None:
    policy = iam_policy(mode, list(Feature), partition="aws-cn")

    arns = {
        each
        for statement in policy["Statement"]
        for each in statement.get("Resource") or statement["NotResource"]
    }
    assert {each.split(":")[1] for each in arns - {"*"}} == {"aws-cn"}


@pytest.mark.parametrize(
    ("action", "resource", "own"),
    [
        ("ec2:TerminateInstances", "ec2:instance/*", NODE),
        ("ec2:AttachVolume", "ec2:instance/*", NODE),
        ("ec2:DeleteVolume", "ec2:volume/*", {"CSIVolumeName": "pv"}),
        ("ec2:DeleteVolume", "ec2:volume/*", {"kubernetes.io/created-for/pvc/name": "data"}),
        ("ec2:DeleteSnapshot", "ec2:snapshot/*", {"CSIVolumeSnapshotName": "snapshot"}),
        (
            "elasticloadbalancing:DeleteLoadBalancer",
            "elasticloadbalancing:loadbalancer/net/*",
            {"kubernetes.io/service-name": "default/web"},
        ),
    ],
)
def test_controllers_can_change_only_what_controllers_created(
    action: str, resource: str, own: dict[str, str]
) -> None:
    policy = iam_policy(Mode.CONTROL_PLANE, list(Feature))

    assert Authorization(action, resource, resource_tags=own).is_allowed(policy)
    foreign = {"Name": "of others", "kubernetes.io/role/elb": "1"}
    assert not Authorization(action, resource, resource_tags=foreign).is_allowed(policy)


def test_only_nodes_can_be_started_and_only_in_the_tags_of_named_clusters() -> None:
    policy = iam_policy(Mode.CONTROL_PLANE, names="shoot--garden--*")

    def creates_group(cluster: str) -> bool:
        tags = {f"kubernetes.io/cluster/{cluster}": "owned"}
        wanted = Authorization("ec2:CreateSecurityGroup", "ec2:security-group/*", tags)
        return wanted.is_allowed(policy)

    def starts(**tags: str) -> bool:
        return Authorization("ec2:RunInstances", "ec2:instance/*", tags).is_allowed(policy)

    assert creates_group("shoot--garden--web")
    assert not creates_group("shoot--other--web")
    assert starts(**NODE)
    assert not starts(Name="other")


@pytest.mark.parametrize("mode", OF_CONTROLLERS)
def test_the_command_prints_the_policies_of_controllers(
    capsys: pytest.CaptureFixture[str], mode: Mode
) -> None:
    command(mode=mode.value, ipv6=True, route_controller=True)

    printed = orjson.loads(capsys.readouterr().out)
    assert printed == iam_policy(mode, [Feature.IPV6, Feature.ROUTE_CONTROLLER])
