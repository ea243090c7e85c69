"""A network plugin: what its author writes beside a config type (spec 40 §5.3, §6.3, §9)."""

from abc import abstractmethod
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pergola.api.field_errors import Cause, sentence
from pergola.api.marks import OPERATION, OPERATION_RESTORE
from pergola.api.network_validation import check_network
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
)
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed
from pergola.bundle import BundleError
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.extensions.health_checks.checks import HealthCheck, managed_resource
from pergola.extensions.provider_config import read_strict
from pergola.extensions.webhooks.declare import Webhook
from pergola.extensions.webhooks.garden import Garden
from pergola.extensions.webhooks.shoot_mutator import ShootDefault
from pergola.kube.errors import KubeError
from pergola.providers.networking.families import effective_families, wanted_families
from pergola.providers.networking.seed_objects import SeedObjects
from pergola.providers.networking.shipping import Shipping
from pergola.runtime.logging import get_logger

log = get_logger("network")

C = TypeVar("C", bound=Value)
T = TypeVar("T")


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
        config: the type of `providerConfig`; its kind is `NetworkConfig` of the group
            `<type>.networking.extensions.gardener.cloud`.
        wait_seconds: how long to wait until the Shoot has everything rolled out before the Network
            counts as reconciled; 0 leaves that to the health checks, so that a Shoot without nodes
            yet gets its network.
    """

    attributes = (*Actuator.attributes, "config")
    kind = "Network"
    config: type[C]
    wait_seconds: float = 0.0

    @abstractmethod
    def check(self, config: C, families: Sequence[str]) -> Iterator[Cause]:
        """Yield what is wrong with a config for these IP families; paths are inside the config."""

    @abstractmethod
    def check_shoot(self, config: C, shoot: Shoot) -> Iterator[Cause]:
        """Yield where a config contradicts its Shoot; paths are inside the Shoot (§7.2)."""

    async def observe(self, context: Context, plan: Plan[C]) -> Plan[C]:
        """Completes the plan with what has to be read from clusters; most plugins read nothing."""
        return plan

    @abstractmethod
    def render(self, plan: Plan[C]) -> Rendered:
        """Return the objects of a plan; pure.

        Raises:
            ExtensionError: the plan cannot be rendered.
        """

    def shoot_defaults(self) -> Sequence[ShootDefault]:
        """What new Shoots with the plugin get where they say nothing; nothing by default."""
        return ()

    def admission_webhooks(self, garden: Garden) -> Sequence[Webhook]:
        """The defaults, if there are any, and the refusals by `check` and `check_shoot` (§7.3)."""
        from pergola.providers.networking.admission import admission_webhooks  # made of plugins

        return admission_webhooks(self, self.shoot_defaults())

    @classmethod
    def config_gvk(cls) -> GroupVersionKind:
        """The kind of its config."""
        return GroupVersionKind(
            f"{cls.type}.networking.extensions.gardener.cloud", "v1alpha1", "NetworkConfig"
        )

    @classmethod
    def origin(cls) -> str:
        """What its objects on the seed are labelled with."""
        return f"extension-networking-{cls.type}"

    @classmethod
    def managed_resource(cls) -> str:
        """The name of the ManagedResource with the objects of the Shoot."""
        return f"{cls.origin()}-config"

    def health_checks(self) -> Sequence[HealthCheck]:
        """What the condition `SystemComponentsHealthy` of a Network tells."""
        return [managed_resource(self.managed_resource())]

    async def reconcile(self, context: Context, obj: JsonObject) -> Status:
        """Makes the Shoot have the network; nothing is written unless all of it can be rendered.

        Raises:
            ExtensionError: the Network, its config or the Shoot do not allow it.
            KubeError: the API server refused, or did not answer.
        """
        plan = await self.observe(context, self.plan(context, obj))
        rendered = self.render(plan)
        if rendered.state is not None and rendered.state != plan.state:
            # First, since what follows may be built on it.
            await context.save({"state": rendered.state})
        shipping = self._to_shoot(context)
        main = {self.managed_resource(): rendered.shoot}
        await shipping.ship({**rendered.managed_resources, **main})
        await self._on_seed(context).apply(rendered.seed)
        if self.wait_seconds and not plan.shoot.hibernation_enabled:
            await shipping.wait_applied(self.managed_resource(), self.wait_seconds)
        for warning in rendered.warnings:
            log.warning(warning, network=str(Key.of(obj)))
        return self._status(plan, rendered)

    async def delete(self, context: Context, obj: JsonObject) -> None:
        """Removes everything, and waits until the Shoot has none of it left.

        Raises:
            ExtensionError: something is still there after two minutes.
            KubeError: the API server refused, or did not answer.
        """
        await self._on_seed(context).delete()
        await self._to_shoot(context).delete_all()

    async def force_delete(self, context: Context, obj: JsonObject) -> None:
        """Asks for the deletion of everything; what cannot be deleted is logged and left behind."""
        await _try(self._on_seed(context).delete(), "objects on the seed")
        shipping = self._to_shoot(context)
        for name in await _try(shipping.names(), "ManagedResources") or ():
            await _try(shipping.delete(name), f"ManagedResource {name}")

    async def migrate(self, context: Context, obj: JsonObject) -> None:
        """Leaves the seed; the Shoot keeps its network, and `status.state` goes with the Network.

        Raises:
            ExtensionError, KubeError: see `delete`.
        """
        await self._to_shoot(context).keep()
        await self.delete(context, obj)

    def plan(self, context: Context, obj: JsonObject) -> Plan[C]:
        """What a Network asks for, checked; pure.

        Raises:
            ExtensionError: something in the Network, its config or the Shoot is wrong.
        """
        if findings := list(check_network(obj)):
            raise _problem(f"invalid network resource: {sentence(findings)}")
        shoot = _shoot_of(context, obj)
        spec, wanted = map_at(obj, "spec"), wanted_families(obj)
        return Plan(
            config=self._checked(spec.get("providerConfig"), wanted, shoot),
            pod_range=spec["podCIDR"],
            service_range=spec["serviceCIDR"],
            families=effective_families(wanted, shoot),
            shoot=shoot,
            namespace=context.namespace,
            state=map_at(obj, "status", "state"),
            is_new=_is_new(obj),
        )

    def _checked(self, value: JsonObject | None, families: Sequence[str], shoot: Shoot) -> C:
        try:
            config = read_strict(self.config, value, self.config_gvk())
        except Malformed as error:
            raise _problem(f"invalid network config: {error}") from error
        findings = [c.under("spec.providerConfig") for c in self.check(config, families)]
        if findings:
            raise _problem(f"invalid network config: {sentence(findings)}")
        if contradictions := list(self.check_shoot(config, shoot)):
            raise _problem(sentence(contradictions))
        return config

    def _status(self, plan: Plan[C], rendered: Rendered) -> Status:
        provider_status: JsonObject = {
            "apiVersion": self.config_gvk().api_version,
            "kind": "NetworkStatus",
            **rendered.status,
        }
        if rendered.warnings:
            provider_status["warnings"] = list(rendered.warnings)
        status: Status = {
            "ipFamilies": list(plan.families),
            "providerStatus": provider_status,
        }
        if rendered.state is not None:
            status["state"] = rendered.state
        return status

    def _to_shoot(self, context: Context) -> Shipping:
        return Shipping(context, self.origin())

    def _on_seed(self, context: Context) -> SeedObjects:
        return SeedObjects(context.client, context.namespace, self.origin())


def _shoot_of(context: Context, obj: JsonObject) -> Shoot:
    if context.cluster is None or context.cluster.shoot is None:
        raise ExtensionError(
            f"Network {Key.of(obj)} belongs to no Shoot: Cluster {context.namespace} has none"
        )
    return context.cluster.shoot


def _is_new(obj: JsonObject) -> bool:
    """A Network that is restored is not new, even if no state came along."""
    status = map_at(obj, "status")
    operation = map_at(status, "lastOperation").get("type", "Create")
    asked = annotations_of(obj).get(OPERATION)
    known = status.get("providerStatus") or status.get("state")
    return operation == "Create" and asked != OPERATION_RESTORE and not known


def _problem(text: str) -> ExtensionError:
    return ExtensionError(text, Code.CONFIGURATION_PROBLEM)


async def _try(work: Awaitable[T], what: str) -> T | None:
    try:
        return await work
    except (KubeError, BundleError) as error:
        log.warning("left behind by a forced deletion", what=what, error=str(error))
        return None
