"""The minimal permissions of the extension's own identity in AWS (spec 30 §14).

One table of the operations that the steps use, which a test compares with the code and with the
calls of whole flows.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject


class Mode(StrEnum):
    """The extension's activity in an account."""

    MANAGED = "managed"
    """It creates networks, or parts of them."""
    BYO = "byo"
    """It uses networks of users, and creates only the identity of nodes."""
    CHECK = "check"
    """It only reads: `pergola aws check` and `plan`."""


class Feature(StrEnum):
    """Optional features of clusters that need extra permissions."""

    EFS = "efs"
    """File systems."""
    IPV6 = "ipv6"
    """IPv6, alone or with IPv4."""
    SECURITY_GROUP = "security-group"
    """A security group that is created in a network of a user; in managed networks it always is."""
    POD_ROUTES = "pod-routes"
    """The removal of dead pod routes from a user's tables, which operators may enable."""
    PERMISSIONS_BOUNDARY = "permissions-boundary"
    """A policy that bounds the roles of nodes."""
    BASTION = "bastion"
    """Hosts through which people reach nodes."""


class _Row(NamedTuple):
    """Operations of a service.

    Attributes:
        modes: the modes that require the actions.
        feature: the feature that requires them; None if they are always required.
    """

    service: str
    operations: str
    modes: tuple[Mode, ...]
    feature: Feature | None = None


_ALWAYS: Final = (Mode.MANAGED, Mode.BYO, Mode.CHECK)
_WRITING: Final = (Mode.MANAGED, Mode.BYO)
_MANAGED: Final = (Mode.MANAGED,)
_BYO: Final = (Mode.BYO,)
_TABLE: Final = (
    _Row(
        "ec2",
        """
        DescribeAddresses DescribeDhcpOptions DescribeInternetGateways DescribeKeyPairs
        DescribeNatGateways DescribeRouteTables DescribeSecurityGroups DescribeSubnets
        DescribeVpcAttribute DescribeVpcEndpoints DescribeVpcs
        """,
        _ALWAYS,
    ),
    _Row("iam", "GetInstanceProfile GetRole GetRolePolicy", _ALWAYS),
    _Row(
        "iam",
        """
        AddRoleToInstanceProfile CreateInstanceProfile CreateRole DeleteInstanceProfile DeleteRole
        DeleteRolePolicy PutRolePolicy RemoveRoleFromInstanceProfile UpdateAssumeRolePolicy
        """,
        _WRITING,
    ),
    _Row("iam", "PutRolePermissionsBoundary", _WRITING, Feature.PERMISSIONS_BOUNDARY),
    _Row("ec2", "CreateTags DeleteKeyPair DeleteTags ImportKeyPair", _WRITING),
    # Load balancers of Services, and their security groups, are left behind in every network.
    # Network interfaces are the reason if something cannot be deleted.
    _Row("ec2", "DeleteSecurityGroup DescribeNetworkInterfaces", _WRITING),
    _Row("ec2", "RevokeSecurityGroupEgress", _WRITING),
    _Row("ec2", "RevokeSecurityGroupIngress", _WRITING),
    _Row(
        "elasticloadbalancing",
        """
        DeleteLoadBalancer DeleteTargetGroup DescribeLoadBalancers DescribeTags
        DescribeTargetGroups
        """,
        _WRITING,
    ),
    _Row(
        "ec2",
        """
        AllocateAddress AssociateDhcpOptions AssociateRouteTable AttachInternetGateway
        CreateDhcpOptions CreateInternetGateway CreateNatGateway CreateRoute CreateRouteTable
        CreateSubnet CreateVpc CreateVpcEndpoint DeleteDhcpOptions DeleteInternetGateway
        DeleteNatGateway DeleteRouteTable DeleteSubnet DeleteVpc DeleteVpcEndpoints
        DetachInternetGateway ModifySubnetAttribute ModifyVpcAttribute
        ModifyVpcEndpoint ReleaseAddress ReplaceRoute ReplaceRouteTableAssociation
        """,
        _MANAGED,
    ),
    _Row(
        "ec2",
        "AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateSecurityGroup",
        _MANAGED,
    ),
    _Row(
        "ec2",
        "AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateSecurityGroup",
        _BYO,
        Feature.SECURITY_GROUP,
    ),
    _Row("ec2", "DeleteRoute", _BYO, Feature.POD_ROUTES),
    _Row("ec2", "DescribeEgressOnlyInternetGateways", _ALWAYS, Feature.IPV6),
    # Managed networks whose IPv6 was disabled again are still observed.
    _Row("ec2", "DescribeEgressOnlyInternetGateways", _MANAGED),
    _Row(
        "ec2",
        "CreateSubnetCidrReservation DeleteSubnetCidrReservation GetSubnetCidrReservations",
        _WRITING,
        Feature.IPV6,
    ),
    _Row(
        "ec2",
        """
        AssociateSubnetCidrBlock AssociateVpcCidrBlock CreateEgressOnlyInternetGateway
        DeleteEgressOnlyInternetGateway
        """,
        _MANAGED,
        Feature.IPV6,
    ),
    _Row(
        "elasticfilesystem",
        "DescribeFileSystems DescribeMountTargets",
        _ALWAYS,
        Feature.EFS,
    ),
    _Row(
        "elasticfilesystem",
        "CreateFileSystem CreateMountTarget DeleteFileSystem DeleteMountTarget TagResource",
        _MANAGED,
        Feature.EFS,
    ),
    # EFS acts on behalf of the identity that creates or deletes a mount target.
    _Row(
        "ec2",
        "CreateNetworkInterface DeleteNetworkInterface",
        _MANAGED,
        Feature.EFS,
    ),
    _Row(
        "ec2",
        """
        AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateSecurityGroup
        DescribeInstances RunInstances TerminateInstances
        """,
        _WRITING,
        Feature.BASTION,
    ),
)
_READS: Final = ("Describe", "Get", "List")
_BOUNDED: Final = (
    "iam:CreateRole",
    "iam:DeleteRolePolicy",
    "iam:PutRolePermissionsBoundary",
    "iam:PutRolePolicy",
)
"""Actions that IAM can allow only for roles with a permissions boundary."""
_TAGGING: Final = ("ec2:CreateTags", "ec2:DeleteTags")
_TAG_KEYS: Final = (
    "Name",
    "gardener.cloud/managed-tag",
    "kubernetes.io/cluster/*",
    "kubernetes.io/role/elb",
    "kubernetes.io/role/internal-elb",
)
_NODES: Final = ("role/{names}-nodes", "instance-profile/{names}-nodes")


def iam_policy(
    mode: Mode,
    features: Collection[Feature] = (),
    *,
    names: str = "shoot--*",
    partition: str = "aws",
    boundary: str = "",
) -> JsonObject:
    """Return an IAM policy with exactly the permissions that the extension needs in a mode.

    Args:
        names: of the clusters, their technical ids, as IAM writes patterns.
        partition: of AWS, such as `aws-cn`.
        boundary: the ARN of the policy that must bound the roles of nodes. Without one, whoever has
            the permissions can give any others to a role, and take it.
    """
    if boundary:
        features = {*features, Feature.PERMISSIONS_BOUNDARY}
    needed = actions(mode, features)
    reads = [action for action in needed if _is_read(action)]
    writes = [action for action in needed if action not in reads]
    statements = [_statement("Reads", reads)]
    if mode is not Mode.CHECK:
        statements += _writing(mode, writes, names, partition, boundary)
    return {"Version": "2012-10-17", "Statement": statements}


def actions(mode: Mode, features: Collection[Feature] = ()) -> list[str]:
    """Return the actions of a mode, sorted, such as `ec2:CreateVpc`."""
    return sorted(
        {
            f"{row.service}:{operation}"
            for row in _TABLE
            if mode in row.modes and (row.feature is None or row.feature in features)
            for operation in row.operations.split()
        }
    )


def _writing(
    mode: Mode, writes: list[str], names: str, partition: str, boundary: str
) -> Iterator[JsonObject]:
    identity = [action for action in writes if action.startswith("iam:")]
    tagging = [action for action in writes if mode is Mode.BYO and action in _TAGGING]
    others = [action for action in writes if action not in identity and action not in tagging]
    yield _statement("Writes", others)
    if tagging:
        # Tags of others in users' networks cannot be touched, even by mistake.
        own = {"ForAllValues:StringLike": {"aws:TagKeys": list(_TAG_KEYS)}}
        yield {**_statement("WritesOwnTags", tagging), "Condition": own}
    nodes = [f"arn:{partition}:iam::*:{each.format(names=names)}" for each in _NODES]
    bounded = [action for action in identity if boundary and action in _BOUNDED]
    free = [action for action in identity if action not in bounded]
    yield _statement("WritesIdentityOfNodes", free, nodes)
    if bounded:
        within = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
        yield {**_statement("WritesBoundedRolesOfNodes", bounded, nodes), "Condition": within}
    to_instances = {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}}
    passing = _statement("GivesRoleToNodes", ["iam:PassRole"], nodes[:1])
    yield {**passing, "Condition": to_instances}


def _statement(name: str, allowed: Iterable[str], on: Iterable[str] = ("*",)) -> JsonObject:
    return {
        "Sid": f"Pergola{name}",
        "Effect": "Allow",
        "Action": list(allowed),
        "Resource": list(on),
    }


def _is_read(action: str) -> bool:
    return action.partition(":")[2].startswith(_READS)
