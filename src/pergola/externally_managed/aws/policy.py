"""What an identity must be allowed to do in AWS: to describe, and nothing else (spec 50 §1.5)."""

from typing import Final

from pergola.api.objects import JsonObject

ACTIONS: Final = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNatGateways",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancers",
)
"""All that is ever called, but for `sts:GetCallerIdentity`, which needs no permission."""


def iam_policy() -> JsonObject:
    """An IAM policy with just that. Descriptions cannot be restricted to single resources."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "PergolaReadsNetworks",
                "Effect": "Allow",
                "Action": list(ACTIONS),
                "Resource": "*",
            }
        ],
    }
