"""`WorkerConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 31)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, field

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value
from pergola.api.schema.quantity import ResourceList
from pergola.providers.aws.config import GROUP

WORKER_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "WorkerConfig")
LARGEST: Final = 2**31 - 1
"""The largest number that AWS's API has in its 32 bits."""

Int32: TypeAlias = Annotated[int, Meta(ge=-LARGEST - 1, le=LARGEST)]


class NodeTemplate(Value):
    """The resources of a node, for the cluster autoscaler."""

    capacity: ResourceList = {}
    """Resources that a machine has."""
    virtual_capacity: ResourceList = {}
    """Resources that nodes report in addition, in whole numbers."""


class VolumeConfig(Value):
    """The speed of a volume."""

    iops: Int32 | None = None
    """Operations per second; required for `io1`."""
    throughput: Int32 | None = None
    """MiB per second."""


class DataVolumeConfig(VolumeConfig):
    """The speed and the content of a data volume."""

    name: str = ""
    """The data volume of the pool."""
    snapshot_id: str | None = field(name="snapshotID", default=None)
    """The snapshot from which it is created."""


class IamInstanceProfile(Value):
    """The instance profile of nodes, by name or by ARN."""

    name: str | None = None
    """Its name."""
    arn: str | None = None
    """Its ARN."""


class InstanceMetadataOptions(Value):
    """Access to the metadata of instances."""

    http_tokens: str | None = None
    """Whether requests need a token: `required` or `optional`."""
    http_put_response_hop_limit: Int32 | None = None
    """The number of network hops that tokens may travel."""


class CpuOptions(Value):
    """The processor of instances."""

    core_count: Int32 | None = None
    """The number of cores."""
    threads_per_core: Int32 | None = None
    """The number of threads of each core."""
    amd_sev_snp: str | None = None
    """Whether memory is encrypted: `enabled` or `disabled`."""


class CapacityReservation(Value):
    """The reservation from which instances are started."""

    capacity_reservation_preference: str | None = None
    """Whether to use reservations: `capacity-reservations-only`, `open` or `none`."""
    capacity_reservation_id: str | None = None
    """A reservation."""
    capacity_reservation_resource_group_arn: str | None = None
    """A group of reservations."""


class IndexRange(Value):
    """A range of network cards."""

    first: int = field(name="from", default=0)
    """The first one."""
    last: int = field(name="to", default=0)
    """The last one."""


class NetworkInterface(Value):
    """Network interfaces of instances, in addition to or instead of the primary one."""

    network_card_index: int | None = None
    """The network card; the first one if absent."""
    network_card_index_range: IndexRange | None = None
    """Several network cards, with an interface on each."""
    device_index: int = 0
    """The place among the interfaces of the instance."""
    type: str | None = None
    """`interface`, `efa` or `efa-only`."""
    description: str | None = None
    """A description for people."""
    subnet_id: str | None = field(name="subnetID", default=None)
    """The subnet; that of the nodes if absent."""


class Placement(Value):
    """The hardware on which instances are started."""

    group_id: str | None = None
    """A placement group."""
    tenancy: str | None = None
    """`default`, `dedicated` or `host`."""
    host_id: str | None = None
    """A dedicated host."""
    partition_number: int | None = None
    """The partition in the placement group."""
    affinity: str | None = None
    """Whether an instance returns to its host: `host` or `default`."""


class InstanceMarketOptions(Value):
    """The market on which instances are bought."""

    market_type: str = ""
    """`spot` or `capacity-block`."""


class WorkerConfig(Value):
    """The owner's configuration of the machines of a pool."""

    node_template: NodeTemplate | None = None
    """The resources of a node, for the cluster autoscaler."""
    volume: VolumeConfig | None = None
    """The root volume."""
    data_volumes: list[DataVolumeConfig] = []
    """Data volumes, by name."""
    iam_instance_profile: IamInstanceProfile | None = None
    """The instance profile; the cluster's own if absent."""
    instance_metadata_options: InstanceMetadataOptions | None = None
    """Access to the metadata of instances."""
    cpu_options: CpuOptions | None = None
    """The processor."""
    capacity_reservation: CapacityReservation | None = None
    """The reservation from which instances are started."""
    network_interfaces: list[NetworkInterface] = []
    """Network interfaces."""
    placement: Placement | None = None
    """The hardware."""
    instance_market_options: InstanceMarketOptions | None = None
    """The market."""
