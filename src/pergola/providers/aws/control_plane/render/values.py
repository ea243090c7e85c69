"""The values from which the objects of a control plane are rendered (spec 31 §6, §7)."""

from dataclasses import dataclass
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.known.kubernetes_versions import Version
from pergola.api.objects import JsonObject, annotations_of, map_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.control_planes import Plan
from pergola.manifests import Images
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.control_plane.credentials import SECRET_NAME, credentials_checksum
from pergola.providers.aws.control_plane.volume_classes import needs_volume_class_gate, version_of
from pergola.providers.aws.control_plane_config import ControlPlaneConfig
from pergola.providers.aws.overlay import has_overlay
from pergola.providers.aws.workload_identity import has_workload_identity

IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
_IPV6_VERSION: Final = 6
_WITHOUT_IPV4: Final = "192.168.0.0/16"
"""The range for pods that the IPAM controller gets when there is none; it needs one."""


@dataclass(frozen=True, slots=True)
class Values:
    """The inputs of the objects."""

    plan: Plan[ControlPlaneConfig]
    images: Images

    @property
    def shoot(self) -> Shoot:
        """The Shoot."""
        return self.plan.shoot

    @property
    def config(self) -> ControlPlaneConfig:
        """The owner's configuration."""
        return self.plan.config

    @property
    def name(self) -> str:
        """The technical ID: the namespace on the seed, and the cluster's name in AWS."""
        return self.plan.namespace

    @property
    def region(self) -> str:
        """The region in AWS."""
        return self.plan.region

    @property
    def vpc(self) -> str:
        """The ID of the VPC."""
        return str(map_at(self.plan.infrastructure, "vpc").get("id") or "")

    @property
    def version(self) -> Version:
        """The Kubernetes version of the Shoot.

        Raises:
            ExtensionError: it has none.
        """
        return version_of(self.shoot)

    @property
    def families(self) -> list[str]:
        """The IP families, primary first."""
        return self.shoot.ip_families

    @property
    def has_only_ipv6(self) -> bool:
        """Whether nodes, pods and Services have no IPv4 address."""
        return IPV6 in self.families and IPV4 not in self.families

    @property
    def pods(self) -> str:
        """The ranges of pods, joined by commas."""
        return ",".join(self.shoot.pod_ranges)

    @property
    def ipv4_pods(self) -> str:
        """The IPv4 range of pods; one without a meaning if there is none."""
        if IPV4 not in self.families:
            return _WITHOUT_IPV4
        ranges = [each for each in self.shoot.pod_ranges if not _is_ipv6(each)]
        return ranges[-1] if ranges else _WITHOUT_IPV4

    @property
    def needs_ipam(self) -> bool:
        """Whether nodes need prefixes for the IPv6 addresses of their pods."""
        return IPV6 in self.families or any(map(_is_ipv6, self.shoot.node_ranges))

    @property
    def has_overlay(self) -> bool:
        """Whether pods communicate through an overlay.

        Raises:
            ExtensionError: the setting is neither true nor false.
        """
        return has_overlay(self.shoot.raw)

    @property
    def workload_identity(self) -> bool:
        """Whether controllers get a role by a token, instead of keys."""
        return has_workload_identity(self.plan.credentials)

    @property
    def secret_checksum(self) -> dict[str, str]:
        """The annotation of pods that restarts them when the credentials change."""
        return {f"checksum/secret-{SECRET_NAME}": credentials_checksum(self.plan.credentials)}

    @property
    def volume_class_gates(self) -> list[str]:
        """The arguments that switch VolumeAttributesClasses on where they are not by default."""
        if not needs_volume_class_gate(self.shoot):
            return []
        # The comma is the original's: without it, pods would restart when it is replaced.
        return ["--feature-gates=VolumeAttributesClass=true,"]

    def annotation(self, name: str) -> str:
        """Return one of our annotations of the Shoot; empty if it has none."""
        value = annotations_of(self.shoot.raw).get(f"{GROUP}/{name}")
        return value if isinstance(value, str) else ""

    def part(self, *path: str) -> JsonObject:
        """Return a part of the Shoot's spec; empty if it is missing."""
        return map_at(self.shoot.raw, "spec", *path)


def _is_ipv6(text: str) -> bool:
    try:
        return parse_network(text).version == _IPV6_VERSION
    except ValueError:
        raise configuration_problem(f'the Shoot has "{text}" as a range of addresses') from None
