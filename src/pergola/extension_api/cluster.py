"""The decoded `Cluster` for the extension resources of a Shoot (spec 40 §3.3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from pergola.api.marks import is_truthy
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    maps_at,
    name_of,
)

CLUSTER: Final = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Cluster")
FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
TOKEN_KUBECONFIG: Final = "generic-token-kubeconfig"  # noqa: S105 - the name of a Secret
TOKEN_KUBECONFIG_NAME: Final = "generic-token-kubeconfig.secret.gardener.cloud/name"  # noqa: S105


class MalformedCluster(Exception):
    """A Cluster contains something that is not an object; the text says where."""


@dataclass(frozen=True, slots=True)
class Shoot:
    """The parts of a Shoot that extensions need; `raw` has the rest."""

    raw: JsonObject

    @property
    def is_failed(self) -> bool:
        """Whether the last operation failed permanently: extensions wait until it is retried."""
        return map_at(self.raw, "status", "lastOperation").get("state") == "Failed"

    @property
    def hibernation_enabled(self) -> bool:
        """Whether the spec requests hibernation."""
        return map_at(self.raw, "spec", "hibernation").get("enabled") is True

    @property
    def is_hibernated(self) -> bool:
        """Whether the Shoot is hibernated, by spec and status."""
        return self.hibernation_enabled and map_at(self.raw, "status").get("hibernated") is True

    @property
    def is_awake(self) -> bool:
        """Whether the Shoot is neither hibernated, nor on its way there or back."""
        is_hibernated = map_at(self.raw, "status").get("hibernated") is True
        return not self.hibernation_enabled and not is_hibernated

    @property
    def is_deleting(self) -> bool:
        """Whether the Shoot is being deleted."""
        return deletion_timestamp_of(self.raw) is not None

    @property
    def is_migrating(self) -> bool:
        """Whether the control plane is leaving its seed."""
        return map_at(self.raw, "status", "lastOperation").get("type") == "Migrate"

    @property
    def is_self_hosted(self) -> bool:
        """Whether the control plane runs on nodes of the Shoot itself."""
        workers = maps_at(self.raw, "spec", "provider", "workers")
        return any(worker.get("controlPlane") is not None for worker in workers)

    @property
    def is_workerless(self) -> bool:
        """Whether the Shoot has no nodes, and therefore no network."""
        return not maps_at(self.raw, "spec", "provider", "workers")

    @property
    def needs_force_deletion(self) -> bool:
        """Whether the owner confirmed a deletion that may leave objects behind."""
        return is_truthy(annotations_of(self.raw).get(FORCE_DELETION))

    @property
    def kubernetes_version(self) -> str:
        """The Kubernetes version, e.g. `1.36.0`; empty if unset."""
        version = map_at(self.raw, "spec", "kubernetes").get("version")
        return version if isinstance(version, str) else ""

    @property
    def kube_proxy_enabled(self) -> bool:
        """Whether kube-proxy routes Services; otherwise the network extension must (§7.2)."""
        return map_at(self.raw, "spec", "kubernetes", "kubeProxy").get("enabled") is not False

    @property
    def kube_proxy_mode(self) -> str:
        """`IPTables`, `IPVS` or `NFTables`; empty if unset."""
        mode = map_at(self.raw, "spec", "kubernetes", "kubeProxy").get("mode")
        return mode if isinstance(mode, str) else ""

    @property
    def ip_families(self) -> list[str]:
        """The IP families in the spec, primary first."""
        return _texts(map_at(self.raw, "spec", "networking").get("ipFamilies"))

    @property
    def pod_ranges(self) -> list[str]:
        """The CIDRs of pods: the one in the spec, then those added by the status."""
        return self._ranges("pods")

    @property
    def service_ranges(self) -> list[str]:
        """The CIDRs of Services: the one in the spec, then those added by the status."""
        return self._ranges("services")

    @property
    def node_range(self) -> str:
        """The CIDR of nodes in the spec; empty if unset."""
        value = map_at(self.raw, "spec", "networking").get("nodes")
        return value if isinstance(value, str) else ""

    @property
    def node_ranges(self) -> list[str]:
        """The CIDRs of nodes reported by the infrastructure."""
        return _texts(map_at(self.raw, "status", "networking").get("nodes"))

    def replicas(self, awake: int) -> int:
        """Return `awake` replicas, or none if the Shoot is hibernated."""
        return 0 if self.hibernation_enabled else awake

    def constraint(self, kind: str) -> str | None:
        """Return the status of a constraint, e.g. `True`; None if the Shoot lacks it."""
        for constraint in maps_at(self.raw, "status", "constraints"):
            if constraint.get("type") == kind:
                return str(constraint.get("status"))
        return None

    def advertised_address(self, name: str) -> str | None:
        """Return the advertised URL of the API server with this name, or None."""
        for address in maps_at(self.raw, "status", "advertisedAddresses"):
            if address.get("name") == name and isinstance(address.get("url"), str):
                return str(address["url"])
        return None

    def _ranges(self, of: str) -> list[str]:
        first = _texts([map_at(self.raw, "spec", "networking").get(of)])
        more = _texts(map_at(self.raw, "status", "networking").get(of))
        return list(dict.fromkeys([*first, *more]))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Shoot with its Seed and CloudProfile, as recorded by the caller for extensions.

    Attributes:
        name: the namespace of the extension resources.
        token_kubeconfig: the Secret in that namespace with the generic kubeconfig for the Shoot.
    """

    name: str
    shoot: Shoot | None = None
    seed: JsonObject | None = None
    cloud_profile: JsonObject | None = None
    token_kubeconfig: str = TOKEN_KUBECONFIG

    @classmethod
    def from_object(cls, obj: JsonObject) -> Self:
        """Decode a `Cluster`; null parts are None.

        Raises:
            MalformedCluster: a part of it is neither an object nor null.
        """
        name, spec = name_of(obj), map_at(obj, "spec")
        shoot = _part(name, spec, "shoot")
        return cls(
            name,
            None if shoot is None else Shoot(shoot),
            _part(name, spec, "seed"),
            _part(name, spec, "cloudProfile"),
            annotations_of(obj).get(TOKEN_KUBECONFIG_NAME) or TOKEN_KUBECONFIG,
        )


def _part(cluster: str, spec: JsonObject, name: str) -> JsonObject | None:
    value = spec.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise MalformedCluster(f"Cluster {cluster}: spec.{name} is not an object")


def _texts(values: object) -> list[str]:
    several: Iterable[object] = values if isinstance(values, list) else ()
    return [value for value in several if isinstance(value, str) and value]
