"""The network plugin `cilium` (spec 40 §6)."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

from pergola.admission.webhook import Webhook
from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.bundle.image_reference import ImageReference
from pergola.bundle.image_vector import ImageVector
from pergola.extension_api.cluster import Shoot
from pergola.extensions.actuator import Context
from pergola.extensions.webhooks.shoot_mutator import KUBE_PROXY_OFF, ShootDefault
from pergola.manifests import Images
from pergola.providers.networking.cilium import checks, node_local_dns
from pergola.providers.networking.cilium.advice import advice
from pergola.providers.networking.cilium.config import NetworkConfig, NetworkStatus
from pergola.providers.networking.cilium.images import image_vector, images_for
from pergola.providers.networking.cilium.ipam import Ipam
from pergola.providers.networking.cilium.observe import ReadLive, observe_ipam, read_live
from pergola.providers.networking.cilium.render import monitoring, shoot_objects
from pergola.providers.networking.cilium.values import Values, values
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered

SHOOT_WEBHOOKS: Final = "extension-cilium-shoot-webhooks"
"""The ManagedResource with the webhook configuration for a Shoot."""

ShootWebhooks = Callable[[], Awaitable[Sequence[JsonObject]]]
"""The webhook configurations for a Shoot, with the authorities that it has to trust now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiliumPlan(Plan[NetworkConfig]):
    """A plan with what was observed.

    Attributes:
        ipam: how the cluster gives addresses to pods.
        webhooks: the webhook configurations for the Shoot; none if nobody serves webhooks.
    """

    ipam: Ipam
    webhooks: Sequence[JsonObject] = ()

    @classmethod
    def of(
        cls, plan: Plan[NetworkConfig], ipam: Ipam, webhooks: Sequence[JsonObject]
    ) -> "CiliumPlan":
        """A plan completed with what was observed."""
        known = {field.name: getattr(plan, field.name) for field in fields(Plan)}
        return cls(**known, ipam=ipam, webhooks=webhooks)


class Cilium(NetworkPlugin[NetworkConfig]):
    """Networks of type `cilium`.

    Args:
        images: what runs; by default the package's own, as `IMAGEVECTOR_OVERWRITE` changes them.
        live: reads the ConfigMap of agents in the Shoot.

    Attributes:
        shoot_webhooks: set by the process that serves `webhooks()`; without it the Shoot gets no
            webhook configuration, since nobody would answer.
    """

    type = "cilium"
    name = node_local_dns.COMPONENT
    config = NetworkConfig
    shoot_webhooks: ShootWebhooks | None = None

    def __init__(self, images: ImageVector | None = None, live: ReadLive = read_live) -> None:
        self._images = images or image_vector()
        self._live = live

    def check(self, config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
        """What no cluster of these IP families can run."""
        return checks.check(config, families)

    def check_shoot(self, config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
        """What contradicts kube-proxy in the Shoot."""
        return checks.check_shoot(config, shoot)

    def webhooks(self) -> Sequence[Webhook]:
        """The webhook in Shoots that adapts node-local DNS."""
        return [node_local_dns.webhook()]

    def shoot_defaults(self) -> Sequence[ShootDefault]:
        """New Shoots need no kube-proxy."""
        return [KUBE_PROXY_OFF]

    async def observe(self, context: Context, plan: Plan[NetworkConfig]) -> CiliumPlan:
        """Finds out how the cluster gives addresses to pods, unless that is known.

        Raises:
            ExtensionError: an existing cluster does not tell.
            KubeError: the seed's API server refused, or did not answer.
        """
        ipam = await observe_ipam(
            context,
            plan.state,
            plan.shoot,
            is_new=plan.is_new,
            managed_resource=self.managed_resource(),
            live=self._live,
        )
        webhooks = await self.shoot_webhooks() if self.shoot_webhooks else ()
        return CiliumPlan.of(plan, ipam, webhooks)

    def render(self, plan: Plan[NetworkConfig]) -> Rendered:
        """The objects of a plan.

        Raises:
            ExtensionError: the Shoot lacks something that they need.
        """
        if not isinstance(plan, CiliumPlan):
            plan = CiliumPlan.of(plan, Ipam.from_state(plan.state), ())
        found = values(plan, plan.ipam)
        images = images_for(self._images, plan.shoot.kubernetes_version)
        return Rendered(
            shoot=shoot_objects(found, images),
            seed=monitoring(plan.namespace),
            managed_resources={SHOOT_WEBHOOKS: plan.webhooks} if plan.webhooks else {},
            status=status(found, images).to_json(),
            state=found.ipam.state() if found.ipam.is_known else None,
            warnings=list(advice(plan.config, plan.families, plan.shoot)),
        )


def status(found: Values, images: Images) -> NetworkStatus:
    """What came of the config, for whoever looks at the Network (Beyond 15)."""
    way = found.routing
    return NetworkStatus(
        agent_version=ImageReference.parse(images("cilium-agent")).tag or "",
        routing_mode="native" if way.is_native else "tunnel",
        tunnel_protocol=None if way.is_native else way.tunnel,
        ipam=found.ipam.mode,
        kube_proxy_replacement=found.kube_proxy_replacement,
        mtu=found.config.mtu or None,
    )
