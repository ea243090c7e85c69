"""A worker pool as an extension receives it (spec 31 §1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.api.schema.declare import Value

C = TypeVar("C", bound=Value)

AMD64: Final = "amd64"
AUTO_IN_PLACE: Final = "AutoInPlaceUpdate"
MANUAL_IN_PLACE: Final = "ManualInPlaceUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(Generic[C]):
    """A pool of a Worker: machines of one type, in several zones.

    Attributes:
        raw: the entry of `spec.pools`.
        config: its decoded `providerConfig`.
        written: the bytes of `providerConfig` as the API server returned them; empty if there are
            none, or if no hash depends on them.
    """

    raw: JsonObject
    config: C
    written: bytes = b""

    @property
    def name(self) -> str:
        """The name, unique in the Worker."""
        return _text(self.raw, "name")

    @property
    def minimum(self) -> int:
        """The least number of machines, in all zones."""
        return _number(self.raw, "minimum")

    @property
    def maximum(self) -> int:
        """The greatest number of machines, in all zones."""
        return _number(self.raw, "maximum")

    @property
    def zones(self) -> Sequence[str]:
        """The zones, in an order that decides the names of MachineDeployments."""
        zones = self.raw.get("zones")
        return [str(zone) for zone in zones] if isinstance(zones, list) else []

    @property
    def machine_type(self) -> str:
        """The type of the machines in the CloudProfile."""
        return _text(self.raw, "machineType")

    @property
    def architecture(self) -> str:
        """The architecture of the machines' processors; `amd64` by default."""
        return _text(self.raw, "architecture") or AMD64

    @property
    def image(self) -> tuple[str, str]:
        """The name and the version of the machine image; empty texts without one."""
        image = map_at(self.raw, "machineImage")
        return _text(image, "name"), _text(image, "version")

    @property
    def kubernetes_version(self) -> str:
        """The version of the kubelet; empty if the pool does not say."""
        return _text(self.raw, "kubernetesVersion")

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the nodes."""
        return {name: str(value) for name, value in map_at(self.raw, "labels").items()}

    @property
    def volume(self) -> JsonObject:
        """The root volume; empty if the pool does not say."""
        return map_at(self.raw, "volume")

    @property
    def data_volumes(self) -> Sequence[JsonObject]:
        """The other volumes, in the order of the spec."""
        return maps_at(self.raw, "dataVolumes")

    @property
    def is_in_place(self) -> bool:
        """Whether updates keep the machines."""
        return self.raw.get("updateStrategy") in (AUTO_IN_PLACE, MANUAL_IN_PLACE)

    @property
    def is_manual(self) -> bool:
        """Whether users choose when a machine is updated in place."""
        return self.raw.get("updateStrategy") == MANUAL_IN_PLACE


def _text(of: JsonObject, name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""


def _number(of: JsonObject, name: str) -> int:
    value = of.get(name)
    return value if isinstance(value, int) else 0
