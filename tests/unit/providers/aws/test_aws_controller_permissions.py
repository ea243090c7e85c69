"""The policy of control planes, compared with what its controllers asked of AWS in our tests."""

from collections.abc import Mapping
from typing import Final

import pytest

from pergola.providers.aws.iam_policy import Feature, Mode, iam_policy
from tests.support.aws.recorded_permissions import (
    CLOUD_CONTROLLER,
    MACHINE_DRIVER,
    recorded_permissions,
)

NOT_RECORDED: Final[Mapping[str, str]] = {
    "the driver of EBS volumes cannot be built as a Go module; its documented policy has them": """
        ec2:AttachVolume ec2:CopyVolumes ec2:CreateSnapshot ec2:CreateVolume ec2:DeleteSnapshot
        ec2:DeleteTags ec2:DeleteVolume ec2:DescribeSnapshots ec2:DescribeTags
        ec2:DescribeVolumeStatus ec2:DescribeVolumes ec2:DescribeVolumesModifications
        ec2:DetachVolume ec2:EnableFastSnapshotRestores ec2:ModifyVolume
        """,
    "the driver of machines is a stand-in; the original's interface of EC2 has them": """
        ec2:AssignIpv6Addresses ec2:DescribeImages ec2:ModifyInstanceAttribute
        """,
    "the controllers of routes and prefixes are not Go modules; their sources have them": """
        ec2:CreateRoute ec2:DeleteRoute ec2:DescribeNetworkInterfaces
        """,
    "no Service of our tests changes; the cloud controller's source has them": """
        elasticloadbalancing:ApplySecurityGroupsToLoadBalancer
        elasticloadbalancing:AttachLoadBalancerToSubnets
        elasticloadbalancing:CreateLoadBalancerPolicy elasticloadbalancing:DeleteListener
        elasticloadbalancing:DeleteLoadBalancerListeners elasticloadbalancing:DeregisterTargets
        elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerPolicies
        elasticloadbalancing:DescribeTargetGroupAttributes
        elasticloadbalancing:DescribeTargetHealth
        elasticloadbalancing:DetachLoadBalancerFromSubnets elasticloadbalancing:ModifyListener
        elasticloadbalancing:ModifyTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes
        elasticloadbalancing:RegisterTargets
        elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer
        elasticloadbalancing:SetLoadBalancerPoliciesOfListener
        """,
    "AWS performs it on behalf of who needs the first load balancer or spot instance": """
        iam:CreateServiceLinkedRole
        """,
}
"""Actions of the policy of control planes that our tests do not see, with the reason."""


@pytest.mark.parametrize("program", [CLOUD_CONTROLLER, MACHINE_DRIVER])
@pytest.mark.parametrize("mode", [Mode.MANAGED, Mode.BYO])
def test_controllers_need_their_policy_and_no_more(program: str, mode: Mode) -> None:
    needed = recorded_permissions(program)
    assert needed != []

    policy = iam_policy(Mode.CONTROL_PLANE)
    extension = iam_policy(mode)

    assert [each for each in needed if not each.is_allowed(policy)] == []
    assert [each for each in needed if not each.is_allowed(extension)] != []


def test_each_permission_of_a_control_plane_is_used_or_has_a_reason() -> None:
    policy = iam_policy(Mode.CONTROL_PLANE, list(Feature))
    allowed = {action for statement in policy["Statement"] for action in statement["Action"]}
    used = {
        each.action
        for program in (CLOUD_CONTROLLER, MACHINE_DRIVER)
        for each in recorded_permissions(program)
    }
    listed = {action for several in NOT_RECORDED.values() for action in several.split()}

    assert used & listed == set()
    assert allowed == used | listed
