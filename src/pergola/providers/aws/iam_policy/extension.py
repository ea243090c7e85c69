"""The operations of the extension's own steps (spec 30 §14).

A test compares the table with the code, and with the calls of whole flows.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from pergola.providers.aws.iam_policy.features import Feature, Mode


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
    # For a hint that the nodes of large clusters need more routes than the account may have.
    _Row("servicequotas", "GetServiceQuota", _ALWAYS, Feature.ROUTE_CONTROLLER),
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
