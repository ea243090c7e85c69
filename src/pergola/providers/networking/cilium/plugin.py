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
from pergola.extensions.seed import Seed
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
"""Returns the webhook configurations for a Shoot, with the current CA bundles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiliumPlan(Plan[NetworkConfig]):
    """A plan, completed with observations of the cluster.

    Attributes:
        ipam: the mode in which pods get addresses.
        webhooks: the webhook configurations for the Shoot; none if no process serves webhooks.
    """

    ipam: Ipam
    webhooks: Sequence[JsonObject] = ()

    @classmethod
    def of(
        cls, plan: Plan[NetworkConfig], ipam: Ipam, webhooks: Sequence[JsonObject]
    ) -> "CiliumPlan":
        """Return a plan completed with these observations."""
        known = {field.name: getattr(plan, field.name) for field in fields(Plan)}
        return cls(**known, ipam=ipam, webhooks=webhooks)


class Cilium(NetworkPlugin[NetworkConfig]):
    """Networks of type `cilium`.

    Args:
        images: by default those of the package, with the overrides of `IMAGEVECTOR_OVERWRITE`.
        live: reads the ConfigMap of agents in the Shoot.

    Attributes:
        shoot_webhooks: set by the process that serves `webhooks()`; without it the Shoot gets no
            webhook configuration, which no process would serve.
    """

    type = "cilium"
    name = node_local_dns.COMPONENT
    config = NetworkConfig
    shoot_webhooks: ShootWebhooks | None = None

    def __init__(self, images: ImageVector | None = None, live: ReadLive = read_live) -> None:
        self._images = images or image_vector()
        self._live = live

    def check(self, config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
        """Yield settings that no cluster of these IP families can run."""
        return checks.check(config, families)

    def check_shoot(self, config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
        """Yield contradictions to the Shoot's kube-proxy."""
        return checks.check_shoot(config, shoot)

    def webhooks(self, seed: Seed) -> Sequence[Webhook]:
        """Return the webhook that adapts node-local DNS in Shoots."""
        return [node_local_dns.webhook()]

    def shoot_defaults(self) -> Sequence[ShootDefault]:
        """Switch kube-proxy off in new Shoots."""
        return [KUBE_PROXY_OFF]

    async def observe(self, context: Context, plan: Plan[NetworkConfig]) -> CiliumPlan:
        """Determine the cluster's IPAM mode, unless it is known.

        Raises:
            ExtensionError: the mode of an existing cluster cannot be read.
            KubeError: the seed's API server refused or did not answer.
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
        """Return the objects of a plan.

        Raises:
            ExtensionError: the Shoot lacks something that the objects need.
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
    """Return the effective settings, for users who read the Network (Beyond 15)."""
    way = found.routing
    return NetworkStatus(
        agent_version=ImageReference.parse(images("cilium-agent")).tag or "",
        routing_mode="native" if way.is_native else "tunnel",
        tunnel_protocol=None if way.is_native else way.tunnel,
        ipam=found.ipam.mode,
        kube_proxy_replacement=found.kube_proxy_replacement,
        mtu=found.config.mtu or None,
    )
