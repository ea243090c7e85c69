"""One finding of the preflight checks, and the command that fixes it."""

from typing import NamedTuple

from pergola.api.field_errors import Cause, shown
from pergola.providers.aws.desired import Desired

VPC_ID = "networks.vpc.id"


class Finding(NamedTuple):
    """A problem, or a possible one.

    Attributes:
        cause: the place in the config, and the problem; paths begin at the `InfrastructureConfig`.
        fix: one shell command with the AWS CLI; it shows the options if there is a choice.
        blocks: whether nothing may be created before it is fixed.
    """

    cause: Cause
    fix: str
    blocks: bool = True

    def __str__(self) -> str:
        return str(self.cause)


def hint(field: str, text: str, fix: str) -> Finding:
    """Return a finding that does not block."""
    return Finding(Cause("Hint", text, field), fix, blocks=False)


def not_found(field: str, value: str, detail: str) -> Cause:
    """Return the cause for a missing resource that the config names."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}: {detail}", field)


def ec2(desired: Desired, command: str) -> str:
    """Return an AWS CLI command for EC2, in the region of the cluster."""
    return f"aws ec2 {command} --region {desired.region}"


def efs(desired: Desired, command: str) -> str:
    """Return an AWS CLI command for file systems."""
    return f"aws efs {command} --region {desired.region}"


def subnets_in(desired: Desired, zone: str) -> str:
    """Return a command that lists the subnets to choose from."""
    return ec2(
        desired,
        f"describe-subnets --filters Name=vpc-id,Values={desired.config.networks.vpc.id} "
        f"Name=availability-zone,Values={zone} "
        "--query 'Subnets[].[SubnetId,CidrBlock,AvailableIpAddressCount]' --output text",
    )


def zone_path(index: int, field: str) -> str:
    """Return the path of a zone's field."""
    return f"networks.zones[{index}].{field}"
