"""The input and the output of a network plugin (spec 40 §5.3, §6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Value
from pergola.extension_api.cluster import Shoot

C = TypeVar("C", bound=Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[C]):
    """The input of rendering: the same plan renders the same bytes.

    Attributes:
        config: the decoded `spec.providerConfig`.
        pod_range: `spec.podCIDR`.
        service_range: `spec.serviceCIDR`.
        families: the IP families to roll out now, primary first; fewer than in the spec while the
            nodes are not migrated yet (§1.4 step 4).
        state: the `status.state` of an earlier run; empty if there is none.
        is_new: whether nothing was ever rolled out for this Network, here or on another seed.
    """

    config: C
    pod_range: str
    service_range: str
    families: tuple[str, ...]
    shoot: Shoot
    namespace: str
    state: JsonObject = field(default_factory=dict)
    is_new: bool = False

    @property
    def ipv4(self) -> bool:
        """Whether IPv4 is in use."""
        return "IPv4" in self.families

    @property
    def ipv6(self) -> bool:
        """Whether IPv6 is in use."""
        return "IPv6" in self.families


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The objects that a plugin renders from a plan.

    Attributes:
        shoot: objects for the Shoot, shipped in one ManagedResource.
        seed: objects next to the Network, such as the configuration of monitoring.
        managed_resources: extra ManagedResources for the Shoot, by name.
        status: the fields of `providerStatus`, without apiVersion and kind.
        state: what must survive the move to another seed; None leaves it unchanged.
        warnings: what users should know although it works.
    """

    shoot: Sequence[JsonObject]
    seed: Sequence[JsonObject] = ()
    managed_resources: dict[str, Sequence[JsonObject]] = field(default_factory=dict)
    status: JsonObject = field(default_factory=dict)
    state: JsonObject | None = None
    warnings: Sequence[str] = ()
