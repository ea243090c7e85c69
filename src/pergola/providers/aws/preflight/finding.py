"""One thing that is wrong with a network in AWS, and the line that repairs it."""

from typing import NamedTuple

from pergola.api.field_errors import Cause, shown
from pergola.providers.aws.wanted import Wanted

VPC_ID = "networks.vpc.id"


class Finding(NamedTuple):
    """What is wrong, or may be.

    Attributes:
        cause: where in the config, and what; paths begin at the `InfrastructureConfig`.
        fix: one line for a shell with the AWS CLI; it shows the choice where there is one.
        blocks: whether nothing may be created before it is repaired.
    """

    cause: Cause
    fix: str
    blocks: bool = True

    def __str__(self) -> str:
        return str(self.cause)


def hint(field: str, text: str, fix: str) -> Finding:
    """Something that may be wrong, but forbids nothing."""
    return Finding(Cause("Hint", text, field), fix, blocks=False)


def not_found(field: str, value: str, detail: str) -> Cause:
    """Something that the config names does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}: {detail}", field)


def ec2(wanted: Wanted, command: str) -> str:
    """A line of the AWS CLI, for the region of the cluster."""
    return f"aws ec2 {command} --region {wanted.region}"


def efs(wanted: Wanted, command: str) -> str:
    """A line of the AWS CLI for file systems."""
    return f"aws efs {command} --region {wanted.region}"


def subnets_in(wanted: Wanted, zone: str) -> str:
    """A line that lists the subnets among which one can choose."""
    return ec2(
        wanted,
        f"describe-subnets --filters Name=vpc-id,Values={wanted.config.networks.vpc.id} "
        f"Name=availability-zone,Values={zone} "
        "--query 'Subnets[].[SubnetId,CidrBlock,AvailableIpAddressCount]' --output text",
    )


def zone_path(index: int, field: str) -> str:
    """The path of a zone's field."""
    return f"networks.zones[{index}].{field}"
