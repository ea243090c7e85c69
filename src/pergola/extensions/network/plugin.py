"""A network plugin: what its author writes beside a config type (spec 40 §5.3, §6.3, §9)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.declare import Value
from pergola.extensions.actuator import Actuator, Context
from pergola.extensions.cluster import Shoot

C = TypeVar("C", bound=Value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[C]):
    """What is known before anything is rendered: the same plan renders the same bytes.

    Attributes:
        config: the decoded `spec.providerConfig`.
        pod_range: `spec.podCIDR`.
        service_range: `spec.serviceCIDR`.
        families: those to be rolled out now, primary first; fewer than the Network asks for while
            its nodes are not migrated yet (§1.4 step 4).
        state: `status.state` as it was saved before; empty if there is none.
    """

    config: C
    pod_range: str
    service_range: str
    families: tuple[str, ...]
    shoot: Shoot
    namespace: str
    state: JsonObject = field(default_factory=dict)

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
    """What a plugin makes of a plan.

    Attributes:
        shoot: objects for the Shoot, which go into one ManagedResource.
        seed: objects beside the Network, such as the configuration of monitoring.
        managed_resources: further ones for the Shoot, by name.
        status: the fields of `providerStatus`, without apiVersion and kind.
        state: what has to survive the move to another seed; None to leave it as it is.
        warnings: what the user should know although it works.
    """

    shoot: Sequence[JsonObject]
    seed: Sequence[JsonObject] = ()
    managed_resources: dict[str, Sequence[JsonObject]] = field(default_factory=dict)
    status: JsonObject = field(default_factory=dict)
    state: JsonObject | None = None
    warnings: Sequence[str] = ()


class NetworkPlugin(Actuator, Generic[C]):
    """An actuator for Networks of one type; its author checks and renders, it does the rest.

    Attributes:
        config: the type of `providerConfig`.
        group: of the config's kinds, `<type>.networking.extensions.gardener.cloud`.
    """

    kind = "Network"
    config: ClassVar[type[Value]]

    def check(self, config: C, families: Sequence[str]) -> Iterator[Cause]:
        """What is wrong with a config for a cluster of these IP families; paths inside of it."""
        raise NotImplementedError

    def check_shoot(self, config: C, shoot: Shoot) -> Iterator[Cause]:
        """What a config and a Shoot contradict each other in; paths in the Shoot (§7.2)."""
        raise NotImplementedError

    async def observe(self, context: Context, plan: Plan[C]) -> Plan[C]:
        """Completes the plan with what has to be read from clusters; most plugins read nothing."""
        return plan

    def render(self, plan: Plan[C]) -> Rendered:
        """The objects; pure.

        Raises:
            ExtensionError: the plan cannot be rendered.
        """
        raise NotImplementedError

    @classmethod
    def config_gvk(cls) -> GroupVersionKind:
        """The kind of its config."""
        return GroupVersionKind(
            f"{cls.type}.networking.extensions.gardener.cloud", "v1alpha1", "NetworkConfig"
        )
