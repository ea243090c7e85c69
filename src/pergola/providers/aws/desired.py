"""The desired state of a cluster's infrastructure: the input of flows, checks and plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.providers.aws.config import InfrastructureConfig

OWNED: Final = "owned"
OWNED_BEFORE: Final = "1"
"""The value used by older clusters instead of `owned`."""
SHARED: Final = "shared"
ROLE_PUBLIC: Final = "kubernetes.io/role/elb"
ROLE_INTERNAL: Final = "kubernetes.io/role/internal-elb"
MARKER: Final = "gardener.cloud/managed-tag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """A cluster's infrastructure as described by its owner and its Shoot.

    Attributes:
        technical_id: the namespace on the seed, and the cluster's name in every tag.
        families: the Shoot's IP families, primary first.
        node_range: `networking.nodes` of the Shoot; empty if it is not set.
        pod_ranges, service_ranges: of the Shoot.
        shoot_uid: token for the creation of a file system.
        ssh_public_key: of `spec.sshPublicKey`; empty for none.
        overlay: whether pods communicate through an overlay, so that no routes are needed (§7.3).
        uses_efa: whether a pool of workers has an Elastic Fabric Adapter (§6.1).
        permissions_boundary: the ARN of the policy that bounds the role of nodes; empty for none.
        most_nodes: the most nodes that all pools may have, by zone, with those of a roll-out.
        tag_worker_subnets: whether user-provided worker subnets get the cluster's tag (§4.3).
    """

    technical_id: str
    region: str
    config: InfrastructureConfig
    families: tuple[str, ...] = ("IPv4",)
    node_range: str = ""
    pod_ranges: tuple[str, ...] = ()
    service_ranges: tuple[str, ...] = ()
    shoot_uid: str = ""
    ssh_public_key: bytes = b""
    overlay: bool = True
    uses_efa: bool = False
    tag_worker_subnets: bool = True
    permissions_boundary: str = ""
    most_nodes: Mapping[str, int] = field(default_factory=dict)

    @property
    def ipv4(self) -> bool:
        """Whether the Shoot has IPv4."""
        return "IPv4" in self.families

    @property
    def ipv6(self) -> bool:
        """Whether the Shoot has IPv6."""
        return "IPv6" in self.families

    @property
    def needs_ipv6_block(self) -> bool:
        """Whether the VPC needs an IPv6 block: for the Shoot, or by the older switch."""
        dual = self.config.dual_stack
        return self.ipv6 or (dual is not None and dual.enabled)

    @property
    def cluster_tag(self) -> str:
        """The key of the tag that marks the cluster's resources."""
        return f"kubernetes.io/cluster/{self.technical_id}"

    @property
    def dhcp_domain(self) -> str:
        """Desired `domain-name` of the VPC's DHCP options."""
        return "ec2.internal" if self.region == "us-east-1" else f"{self.region}.compute.internal"

    def name(self, suffix: str = "") -> str:
        """Return the `Name` of a resource of this cluster (§3.2), such as `shoot--p--s-nodes`."""
        return f"{self.technical_id}-{suffix}" if suffix else self.technical_id

    def tags(self, suffix: str = "", **more: str) -> dict[str, str]:
        """Return the tags of a resource created for this cluster."""
        return {self.cluster_tag: OWNED, "Name": self.name(suffix), **more}

    def owns(self, tags: dict[str, str]) -> bool:
        """Return whether tags mark a resource as created for this cluster."""
        return tags.get(self.cluster_tag) in (OWNED, OWNED_BEFORE)
