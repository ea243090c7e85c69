"""The interface for authors of network plugins (spec 40 §5.3, §6.3, §9)."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic

from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind
from pergola.extension_api.cluster import Shoot
from pergola.extensions.actuator import Actuator, Context
from pergola.extensions.webhooks.shoot_mutator import ShootDefault
from pergola.providers.networking.plan import C, Plan, Rendered


class PluginContract(Actuator, Generic[C]):
    """The config of a network plugin, its checks and its objects; pure but for `observe`.

    Attributes:
        config: the type of `providerConfig`; its kind is `NetworkConfig` of the group
            `<type>.networking.extensions.gardener.cloud`.
        wait_seconds: how long a reconciliation waits until the Shoot has everything rolled out; 0
            leaves that to the health checks, so that a Shoot without nodes gets its network.
    """

    attributes = (*Actuator.attributes, "config")
    kind = "Network"
    config: type[C]
    wait_seconds: float = 0.0

    @abstractmethod
    def check(self, config: C, families: Sequence[str]) -> Iterator[Cause]:
        """Yield the problems of a config for these IP families; paths are inside the config."""

    @abstractmethod
    def check_shoot(self, config: C, shoot: Shoot) -> Iterator[Cause]:
        """Yield where a config contradicts its Shoot; paths are inside the Shoot (§7.2)."""

    @abstractmethod
    def render(self, plan: Plan[C]) -> Rendered:
        """Return the objects of a plan; pure.

        Raises:
            ExtensionError: the plan cannot be rendered.
        """

    async def observe(self, context: Context, plan: Plan[C]) -> Plan[C]:
        """Complete the plan with what must be read from clusters; nothing by default."""
        return plan

    def shoot_defaults(self) -> Sequence[ShootDefault]:
        """Return the defaults for new Shoots with the plugin; none by default."""
        return ()

    @classmethod
    def config_gvk(cls) -> GroupVersionKind:
        """Return the kind of its config."""
        return GroupVersionKind(
            f"{cls.type}.networking.extensions.gardener.cloud", "v1alpha1", "NetworkConfig"
        )

    @classmethod
    def origin(cls) -> str:
        """Return the value of the origin label of its objects on the seed."""
        return f"extension-networking-{cls.type}"

    @classmethod
    def managed_resource(cls) -> str:
        """Return the name of the ManagedResource with the objects of the Shoot."""
        return f"{cls.origin()}-config"
