"""The permissions of the controllers of a Shoot, which use the same credentials as the extension.

The controllers of EFS volumes are not among them: they run in the Shoot, with the role of nodes.

Sources: the calls in cloud-provider-aws v1.36, machine-controller-manager-provider-aws,
aws-custom-route-controller and aws-ipam-controller; the documented policies of
aws-ebs-csi-driver and aws-load-balancer-controller.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pergola.providers.aws.iam_policy.features import Feature, Mode

Condition = Mapping[str, Mapping[str, str | list[str]]]

NAMES: Final = "{names}"
"""Stands for the names of clusters in a condition."""
_ALWAYS: Final[Condition] = {}
_OWN: Final[Condition] = {
    "ForAnyValue:StringLike": {"aws:TagKeys": f"kubernetes.io/cluster/{NAMES}"}
}
"""A request that tags something as that of a cluster."""
_NODE: Final[Condition] = {"StringEquals": {"aws:ResourceTag/kubernetes.io/role/node": "1"}}


class Permission(NamedTuple):
    """Actions that are allowed together.

    Attributes:
        name: of the statement, without its prefix; empty for reads, which share a statement.
        actions: with their services, such as `ec2:CreateVolume`.
        on: types of resources with their service, such as `ec2:volume/*`; `*` for all.
        condition: as in a policy.
        feature: that requires the actions; None if they are always required.
        other_than: whether `on` has the resources to which this does not apply.
    """

    name: str
    actions: tuple[str, ...]
    on: tuple[str, ...] = ("*",)
    condition: Condition = _ALWAYS
    feature: Feature | None = None
    other_than: bool = False


def _of(service: str, operations: str) -> tuple[str, ...]:
    return tuple(f"{service}:{operation}" for operation in operations.split())


def _tagged(key: str) -> Condition:
    """Return the condition that something has a tag, with any value."""
    return {"Null": {f"aws:ResourceTag/{key}": "false"}}


def _tags(key: str) -> Condition:
    """Return the condition that a request sets a tag, to any value."""
    return {"Null": {f"aws:RequestTag/{key}": "false"}}


def _service_roles(*services: str) -> Permission:
    """Return the permission to create roles that AWS itself needs, once in each account."""
    return Permission(
        "StartsServices",
        ("iam:CreateServiceLinkedRole",),
        tuple(f"iam:role/aws-service-role/{service}/*" for service in services),
        {"StringEquals": {"iam:AWSServiceName": list(services)}},
    )


_ELB: Final = "elasticloadbalancing"
_BALANCING: Final = f"{_ELB}.amazonaws.com"
_BALANCERS: Final = (f"{_ELB}:loadbalancer/*", f"{_ELB}:targetgroup/*")
_CONTROL_PLANE: Final = (
    Permission(
        "",
        (
            *_of(
                "ec2",
                """
                DescribeAvailabilityZones DescribeImages DescribeInstanceTopology DescribeInstances
                DescribeRouteTables DescribeSecurityGroups DescribeSnapshots DescribeSubnets
                DescribeTags DescribeVolumeStatus DescribeVolumes DescribeVolumesModifications
                """,
            ),
            *_of(
                _ELB,
                """
                DescribeListeners DescribeLoadBalancerAttributes DescribeLoadBalancerPolicies
                DescribeLoadBalancers DescribeTargetGroupAttributes DescribeTargetGroups
                DescribeTargetHealth
                """,
            ),
        ),
    ),
    # The cloud controller manager: load balancers of Services.
    Permission(
        "CreatesBalancers",
        (
            *_of("ec2", "CreateSecurityGroup CreateTags"),
            *_of(_ELB, "AddTags CreateLoadBalancer CreateTargetGroup"),
        ),
        ("ec2:security-group/*", *_BALANCERS, f"{_ELB}:listener/net/*"),
        _OWN,
    ),
    # Groups in a VPC, volumes from a snapshot.
    Permission(
        "CreatesFrom",
        _of("ec2", "CreateSecurityGroup CreateVolume"),
        ("ec2:snapshot/*", "ec2:vpc/*"),
    ),
    # A group has only the tag of its cluster, whose key differs: no condition can express that.
    Permission(
        "ChangesGroups",
        _of(
            "ec2",
            "AuthorizeSecurityGroupIngress DeleteSecurityGroup RevokeSecurityGroupIngress",
        ),
        ("ec2:security-group/*",),
    ),
    Permission(
        "ChangesBalancers",
        _of(
            _ELB,
            """
            ApplySecurityGroupsToLoadBalancer AttachLoadBalancerToSubnets ConfigureHealthCheck
            CreateListener CreateLoadBalancerListeners CreateLoadBalancerPolicy DeleteLoadBalancer
            DeleteLoadBalancerListeners DeleteTargetGroup DeregisterInstancesFromLoadBalancer
            DeregisterTargets DetachLoadBalancerFromSubnets ModifyLoadBalancerAttributes
            ModifyTargetGroup ModifyTargetGroupAttributes RegisterInstancesWithLoadBalancer
            RegisterTargets SetLoadBalancerPoliciesForBackendServer
            SetLoadBalancerPoliciesOfListener
            """,
        ),
        _BALANCERS,
        _tagged("kubernetes.io/service-name"),
    ),
    # Older versions do not tag listeners.
    Permission(
        "ChangesListeners", _of(_ELB, "DeleteListener ModifyListener"), (f"{_ELB}:listener/net/*",)
    ),
    _service_roles(_BALANCING, "spot.amazonaws.com"),
    # The driver of EBS volumes. Users may attach volumes that they have created themselves.
    Permission(
        "CreatesVolumes",
        _of("ec2", "CopyVolumes CreateVolume"),
        ("ec2:volume/*",),
        _tags("CSIVolumeName"),
    ),
    Permission(
        "UsesVolumes",
        _of("ec2", "AttachVolume CopyVolumes CreateSnapshot DetachVolume ModifyVolume"),
        ("ec2:volume/vol-*",),
    ),
    Permission(
        "ChangesVolumes",
        _of("ec2", "CreateTags DeleteTags DeleteVolume"),
        ("ec2:volume/*",),
        _tagged("CSIVolumeName"),
    ),
    # Kubernetes itself created them, before there was a driver.
    Permission(
        "DeletesInTreeVolumes",
        ("ec2:DeleteVolume",),
        ("ec2:volume/*",),
        _tagged("kubernetes.io/created-for/pvc/name"),
    ),
    Permission(
        "CreatesSnapshots",
        ("ec2:CreateSnapshot",),
        ("ec2:snapshot/*",),
        _tags("CSIVolumeSnapshotName"),
    ),
    Permission(
        "ChangesSnapshots",
        _of("ec2", "DeleteSnapshot EnableFastSnapshotRestores"),
        ("ec2:snapshot/*",),
        _tagged("CSIVolumeSnapshotName"),
    ),
    # machine-controller-manager.
    Permission(
        "StartsNodes",
        ("ec2:RunInstances",),
        ("ec2:instance/*",),
        {"StringEquals": {"aws:RequestTag/kubernetes.io/role/node": "1"}},
    ),
    # With an image, in a subnet, in security groups, with volumes, and so on.
    Permission("StartsNodesWith", ("ec2:RunInstances",), ("ec2:instance/*",), other_than=True),
    Permission(
        "ChangesNodes",
        _of("ec2", "AttachVolume DetachVolume ModifyInstanceAttribute TerminateInstances"),
        ("ec2:instance/*",),
        _NODE,
    ),
    Permission(
        "TagsWhatItCreates",
        ("ec2:CreateTags",),
        ("ec2:instance/*", "ec2:network-interface/*", "ec2:snapshot/*", "ec2:volume/*"),
        {
            "StringEquals": {
                "ec2:CreateAction": [
                    "CopyVolumes",
                    "CreateSnapshot",
                    "CreateVolume",
                    "RunInstances",
                ]
            }
        },
    ),
    # Addresses of pods: machine-controller-manager assigns prefixes, the IPAM controller reads
    # them.
    Permission("", ("ec2:DescribeNetworkInterfaces",), feature=Feature.IPV6),
    Permission(
        "AssignsPrefixes",
        ("ec2:AssignIpv6Addresses",),
        ("ec2:network-interface/*",),
        _NODE,
        Feature.IPV6,
    ),
    Permission(
        "WritesPodRoutes",
        _of("ec2", "CreateRoute DeleteRoute"),
        ("ec2:route-table/*",),
        feature=Feature.ROUTE_CONTROLLER,
    ),
)
_BY_TYPE: Final = (
    f"{_ELB}:loadbalancer/app/*",
    f"{_ELB}:loadbalancer/net/*",
    f"{_ELB}:targetgroup/*",
)
_TAG: Final = "elbv2.k8s.aws/cluster"
_LOAD_BALANCER_CONTROLLER: Final = (
    Permission(
        "",
        (
            *_of(
                "ec2",
                """
                DescribeAccountAttributes DescribeAddresses DescribeAvailabilityZones
                DescribeCoipPools DescribeInstances DescribeInternetGateways DescribeIpamPools
                DescribeNetworkInterfaces DescribeRouteTables DescribeSecurityGroups
                DescribeSubnets DescribeTags DescribeVpcPeeringConnections DescribeVpcs
                GetCoipPoolUsage GetSecurityGroupsForVpc
                """,
            ),
            *_of(
                _ELB,
                """
                DescribeCapacityReservation DescribeListenerAttributes
                DescribeListenerCertificates DescribeListeners DescribeLoadBalancerAttributes
                DescribeLoadBalancers DescribeRules DescribeSSLPolicies DescribeTags
                DescribeTargetGroupAttributes DescribeTargetGroups DescribeTargetHealth
                DescribeTrustStores
                """,
            ),
            *_of("acm", "DescribeCertificate ListCertificates"),
            "cognito-idp:DescribeUserPoolClient",
            *_of("iam", "GetServerCertificate ListServerCertificates"),
            *_of("shield", "DescribeProtection GetSubscriptionState"),
            *_of("waf-regional", "GetWebACL GetWebACLForResource"),
            *_of("wafv2", "GetWebACL GetWebACLForResource"),
        ),
    ),
    Permission(
        "ProtectsBalancers",
        (
            *_of("shield", "CreateProtection DeleteProtection"),
            *_of("waf-regional", "AssociateWebACL DisassociateWebACL"),
            *_of("wafv2", "AssociateWebACL DisassociateWebACL"),
        ),
    ),
    Permission(
        "CreatesBalancers",
        (
            *_of("ec2", "CreateSecurityGroup CreateTags"),
            *_of(_ELB, "AddTags CreateLoadBalancer CreateTargetGroup"),
        ),
        ("ec2:security-group/*", *_BY_TYPE),
        _tags(_TAG),
    ),
    Permission("CreatesGroupsInVpcs", ("ec2:CreateSecurityGroup",), ("ec2:vpc/*",)),
    # Load balancers must reach nodes, whose group lacks the tag.
    Permission(
        "ChangesRules",
        _of("ec2", "AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress"),
        ("ec2:security-group/*",),
    ),
    Permission(
        "ChangesBalancers",
        (
            *_of("ec2", "CreateTags DeleteSecurityGroup DeleteTags"),
            *_of(
                _ELB,
                """
                AddTags CreateListener DeleteLoadBalancer DeleteTargetGroup
                ModifyCapacityReservation ModifyIpPools ModifyLoadBalancerAttributes
                ModifyTargetGroup ModifyTargetGroupAttributes RemoveTags SetIpAddressType
                SetSecurityGroups SetSubnets SetWebAcl
                """,
            ),
        ),
        ("ec2:security-group/*", *_BY_TYPE),
        _tagged(_TAG),
    ),
    # A TargetGroupBinding may name a target group that its user has created.
    Permission(
        "RegistersTargets",
        _of(_ELB, "DeregisterTargets RegisterTargets"),
        (f"{_ELB}:targetgroup/*",),
    ),
    Permission(
        "WritesListeners",
        _of(
            _ELB,
            """
            AddListenerCertificates AddTags CreateRule DeleteListener DeleteRule ModifyListener
            ModifyListenerAttributes ModifyRule RemoveListenerCertificates RemoveTags
            SetRulePriorities
            """,
        ),
        (f"{_ELB}:listener-rule/*", f"{_ELB}:listener/*"),
    ),
    _service_roles(_BALANCING),
)
PERMISSIONS: Final = {
    Mode.CONTROL_PLANE: _CONTROL_PLANE,
    Mode.LOAD_BALANCER_CONTROLLER: _LOAD_BALANCER_CONTROLLER,
}
