"""IAM policies: for Pergola, which only reads, and for the AWS provider (spec 50 §1.5)."""

from typing import Final

from pergola.api.objects import JsonObject

ACTIONS: Final = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeEgressOnlyInternetGateways",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNatGateways",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancers",
)
"""Everything that Pergola calls, except `sts:GetCallerIdentity`, which needs no permission."""

MACHINE_ACTIONS: Final = (
    "ec2:CreateTags",
    "ec2:DeleteTags",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaceAttribute",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:ModifyInstanceMetadataOptions",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:RunInstances",
    "ec2:TerminateInstances",
)
"""The AWS provider's calls for AWSMachines; none creates or changes a network."""


def iam_policy() -> JsonObject:
    """Return the policy for Pergola. Descriptions cannot be restricted to single resources."""
    return _policy(_allow("PergolaReadsNetworks", ACTIONS))


def machine_policy() -> JsonObject:
    """Return the policy for the AWS provider if networks are managed externally.

    Machines read their bootstrap data from Secrets Manager, and use roles whose names have the
    provider's usual suffix.
    """
    secrets = ("secretsmanager:CreateSecret", "secretsmanager:DeleteSecret")
    return _policy(
        _allow("MachinesInExistingNetworks", MACHINE_ACTIONS),
        _allow(
            "RolesOfMachines",
            ("iam:PassRole",),
            "arn:*:iam::*:role/*.cluster-api-provider-aws.sigs.k8s.io",
        ),
        _allow(
            "BootstrapData",
            (*secrets, "secretsmanager:TagResource"),
            "arn:*:secretsmanager:*:*:secret:aws.cluster.x-k8s.io/*",
        ),
    )


def _policy(*statements: JsonObject) -> JsonObject:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(name: str, actions: tuple[str, ...], resource: str = "*") -> JsonObject:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resource}
