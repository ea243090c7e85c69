"""The token buckets of AWS's APIs, with their documented default sizes.

EC2 has a bucket for each action; each version of Elastic Load Balancing has one for all reads and
one for most writes; Route 53 has one for everything. IAM, STS and EFS document none: they are
assumed to be like EC2, and throttling corrects that. S3 allows far more than we send.
"""

from typing import Final, NamedTuple

READS: Final = ("Describe", "Get", "List", "Search", "Lookup")
"""The prefixes of read-only operations."""


class Limit(NamedTuple):
    """A token bucket.

    Attributes:
        capacity: the number of requests that may be sent at once.
        refill: the number of requests per second after that.
    """

    capacity: float
    refill: float


class Slot(NamedTuple):
    """The bucket of a request.

    Attributes:
        name: its name within the service.
        is_global: whether all regions share it.
    """

    name: str
    limit: Limit
    is_global: bool = False


_EC2_READ: Final = Limit(100, 20)
_EC2_READ_OF_ALL: Final = Limit(50, 10)
_EC2_WRITE: Final = Limit(50, 5)
_ELB_READ: Final = Limit(40, 10)
_ELB_WRITE: Final = Limit(20, 3)
_ROUTE_53: Final = Limit(5, 5)
_S3: Final = Limit(3500, 3500)
_EC2_OWN: Final = {
    Limit(100, 10): "CreateTags DeleteTags",
    Limit(100, 5): "CreateNetworkInterface DeleteNetworkInterface TerminateInstances",
    Limit(10, 1): """
        AssociateNatGatewayAddress CreateNatGateway DeleteNatGateway DisassociateNatGatewayAddress
    """,
    Limit(5, 1): "CreateSubnetCidrReservation DeleteSubnetCidrReservation",
    Limit(5, 2): "RunInstances StartInstances",
    Limit(4, 0.3): "CreateVpcEndpoint DeleteVpcEndpoints ModifyVpcEndpoint",
}
_EC2: Final = {name: limit for limit, names in _EC2_OWN.items() for name in names.split()}
_EC2_SMALLER_IF_UNFILTERED: Final = frozenset(
    (
        "DescribeInstanceStatus",
        "DescribeInstances",
        "DescribeNetworkInterfaces",
        "DescribeSecurityGroups",
        "DescribeSnapshots",
        "DescribeVolumes",
    )
)
_FILTERS: Final = ("Filters", "MaxResults", "NextToken")
_GLOBAL: Final = ("iam", "route53")


def slot_of(service: str, operation: str, parameters: dict[str, object]) -> Slot:
    """Return the bucket that a request takes a token from."""
    is_read = operation.startswith(READS)
    if service in ("elb", "elbv2"):
        return Slot("reads", _ELB_READ) if is_read else Slot("writes", _ELB_WRITE)
    if service == "route53":
        return Slot("all", _ROUTE_53, is_global=True)
    if service == "s3":
        return Slot("all", _S3)
    if service == "ec2" and operation in _EC2_SMALLER_IF_UNFILTERED:
        is_filtered = any(parameters.get(name) for name in _FILTERS)
        name = operation if is_filtered else f"{operation} without filter"
        return Slot(name, _EC2_READ if is_filtered else _EC2_READ_OF_ALL)
    limit = _EC2.get(operation, _EC2_READ if is_read else _EC2_WRITE)
    return Slot(operation, limit, is_global=service in _GLOBAL)
