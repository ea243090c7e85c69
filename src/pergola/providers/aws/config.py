"""`InfrastructureConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 30 §1.1)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Final, Self

from msgspec import field
from msgspec.structs import replace

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value

GROUP: Final = "aws.provider.extensions.gardener.cloud"
INFRASTRUCTURE_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "InfrastructureConfig")


class Ipv6IpamPool(Value):
    """The source of a VPC's IPv6 block."""

    id: str | None = None
    """The pool."""
    cidr_block: str | None = None
    """The block of the pool; a canonical /56."""


class Vpc(Value):
    """The VPC: an existing one by `id`, or a managed one by `cidr`."""

    id: str | None = None
    """An existing VPC."""
    cidr: str | None = None
    """The range of a VPC to create."""
    gateway_endpoints: list[str] = []
    """Short names of services, such as `s3`, to reach through gateway endpoints."""
    ipv6_ipam_pool: Ipv6IpamPool | None = field(name="ipv6IpamPool", default=None)
    """The source of the IPv6 block; Amazon if absent."""


class Zone(Value):
    """The network in one availability zone: ranges of managed subnets, or user-provided subnets."""

    name: str
    """The availability zone, such as `eu-west-1a`."""
    workers: str | None = None
    """The range of a subnet for nodes, to be created."""
    internal: str | None = None
    """The range of a subnet for internal load balancers, to be created."""
    public: str | None = None
    """The range of a subnet for public load balancers and the NAT gateway, to be created."""
    workers_subnet_id: str | None = field(name="workersSubnetID", default=None)
    """An existing subnet for nodes."""
    public_subnet_id: str | None = field(name="publicSubnetID", default=None)
    """An existing subnet for public load balancers."""
    internal_subnet_id: str | None = field(name="internalSubnetID", default=None)
    """An existing subnet for internal load balancers."""
    elastic_ip_allocation_id: str | None = field(name="elasticIPAllocationID", default=None)
    """An existing elastic IP for the NAT gateway."""


class Networks(Value):
    """The VPC and its zones."""

    vpc: Vpc
    """The VPC."""
    zones: list[Zone] = []
    """The zones; their order must not change."""
    nodes_security_group_id: str | None = field(name="nodesSecurityGroupID", default=None)
    """An existing security group for the nodes, instead of a managed one."""


class DualStack(Value):
    """The older switch for IPv4 and IPv6."""

    enabled: bool
    """Whether the VPC gets an IPv6 block."""


class IgnoreTags(Value):
    """Tags of others on managed resources, which are preserved."""

    keys: list[str] = []
    """Complete keys."""
    key_prefixes: list[str] = []
    """Prefixes of keys."""


class ElasticFileSystem(Value):
    """A file system for volumes that many nodes mount."""

    enabled: bool = False
    """Whether to use a file system."""
    id: str | None = None
    """An existing file system; created if absent."""


class InfrastructureConfig(Value):
    """The owner's configuration of a Shoot's network in AWS."""

    networks: Networks
    """The VPC and its zones."""
    enable_ecr_access: bool | None = field(name="enableECRAccess", default=None)
    """Whether nodes may read from AWS's container registry; true if absent."""
    dual_stack: DualStack | None = None
    """The older switch for IPv4 and IPv6."""
    ignore_tags: IgnoreTags | None = None
    """Tags of others on managed resources, which are preserved."""
    enable_dedicated_tenancy_for_vpc: bool | None = field(
        name="enableDedicatedTenancyForVPC", default=None
    )
    """Whether instances run on dedicated hardware."""
    elastic_file_system: ElasticFileSystem | None = None
    """A file system for volumes that many nodes mount."""
    enable_mtu_customizer: bool | None = field(name="enableMTUCustomizer", default=None)
    """Whether nodes get an MTU of 1460; true if absent."""

    def with_each_zone_once(self) -> Self:
        """Return the config with only the first entry of each zone; old clusters have several."""
        zones: dict[str, Zone] = {}
        for zone in self.networks.zones:
            zones.setdefault(zone.name, zone)
        return replace(self, networks=replace(self.networks, zones=list(zones.values())))

    @property
    def byo_subnets(self) -> bool:
        """Whether the worker subnets are user-provided (BYO mode)."""
        return any(zone.workers_subnet_id for zone in self.networks.zones)

    @property
    def byo_vpc(self) -> bool:
        """Whether the VPC is user-provided."""
        return bool(self.networks.vpc.id)

    @property
    def has_public_zone(self) -> bool:
        """Whether any zone has a managed public subnet."""
        return any(zone.public for zone in self.networks.zones)

    @property
    def wants_ecr(self) -> bool:
        """Whether nodes may read from AWS's container registry."""
        return self.enable_ecr_access is not False

    @property
    def wants_efs(self) -> bool:
        """Whether there is a file system for volumes."""
        return self.elastic_file_system is not None and self.elastic_file_system.enabled
