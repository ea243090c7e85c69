"""The interface that the author of an extension implements (spec 40 §3.1)."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

from pergola.admission.webhook import Webhook
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extension_api.kinds import GROUP, VERSION
from pergola.extensions.garden import Garden
from pergola.extensions.health_checks.checks import HealthCheck
from pergola.extensions.seed import Seed
from pergola.kube.client import Client
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

_DEADLINE_SECONDS: Final = 180.0
_DEADLINES_OF_KINDS: Final = MappingProxyType(
    {"Bastion": 1200.0, "Infrastructure": 1200.0, "Worker": 1200.0}
)
"""Those that are not three minutes, as in Gardener: machines and gateways of a cloud are slow."""
Status = JsonObject
"""Fields of `status` that an actuator sets: `providerStatus`, `state`, `resources`, `ipFamilies`, …

The SDK writes them in one patch with the outcome. `lastOperation`, `lastError`, `conditions` and
`observedGeneration` belong to the SDK.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The inputs of one run of an actuator.

    Attributes:
        client: for the seed with the extension resource.
        cluster: its Shoot; None if it has none, like resources of the classes `seed` and `garden`.
        namespace: of the extension resource.
        progress: reports percent and a sentence, which the SDK writes to `lastOperation`; a call
            shortly after another may be skipped, and failures are ignored.
        save: writes fields of `status` at once, such as `state` after something was created.
    """

    client: Client
    cluster: Cluster | None
    namespace: str
    clock: Clock
    progress: Callable[[int, str], Awaitable[None]]
    save: Callable[[Status], Awaitable[None]]

    def shoot_of(self, obj: JsonObject) -> tuple[Cluster, Shoot]:
        """Return the Cluster and the Shoot of a resource.

        Raises:
            ExtensionError: it has none.
        """
        if self.cluster is None or self.cluster.shoot is None:
            raise ExtensionError(
                f"{obj.get('kind')} {Key.of(obj)} belongs to no Shoot: "
                f"Cluster {self.namespace} has none"
            )
        return self.cluster, self.cluster.shoot


class Actuator(ABC):
    """Creates, changes and deletes the objects that extension resources of one type describe.

    Every method can be cancelled at any await and is called again later, so it is idempotent.
    Errors are written to `status.lastError` and retried: an `ExtensionError` is meant for the user,
    a `RequeueAfter` requests another run at a given time, and anything else counts as a bug.

    Attributes:
        attributes: the names of the class attributes that an author must set.
        kind: the kind of the resources, such as `Network`.
        type: the type of the resources: `spec.type`.
        name: the name of the extension, such as `networking-calico`: the holder of its heartbeat.
        feature_gates: gates that an operator may set for all resources, with their defaults; passed
            to `configure`.
        needs_cluster: whether nothing can be done while the Cluster of a resource does not exist.
        protects_secret: whether the Secret in `spec.secretRef` gets a finalizer, so that it stays
            until everything that needs it was deleted, and whether its changes trigger a run if no
            caller does (`--ignore-operation-annotation`; that needs `list` and `watch` on Secrets).
        follows_namespace: whether changes of the namespace with the name of its Cluster trigger a
            run in the same way, with the same verbs on Namespaces.
        finalizer: the finalizer of its resources; empty for that of the kind. Originals of the kind
            Extension have one of their own each: name it to replace such an extension.
        deadline: the time limit of one run in seconds, unless an operator sets another one; 0 for
            that of the kind.
        rules: the rules of a ClusterRole: permissions on the seed in addition to those of every
            extension.
        registered_as: the name of its registration, if another extension has `name`.
        shoot_webhooks: returns the registrations of the `webhooks()` for Shoots, which an actuator
            ships in the ManagedResource `shoot_webhooks_resource()`. Set by the process that serves
            them; None if it serves none.
    """

    attributes: ClassVar[Sequence[str]] = ("kind", "type", "name")
    kind: ClassVar[str]
    type: ClassVar[str]
    name: ClassVar[str]
    registered_as: ClassVar[str] = ""
    feature_gates: ClassVar[Mapping[str, bool]] = {}
    needs_cluster: ClassVar[bool] = True
    protects_secret: ClassVar[bool] = False
    follows_namespace: ClassVar[bool] = False
    finalizer: ClassVar[str] = ""
    deadline: ClassVar[float] = 0.0
    rules: ClassVar[Sequence[JsonObject]] = ()
    shoot_webhooks: Callable[[], Awaitable[Sequence[JsonObject]]] | None = None

    def configure(self, gates: Mapping[str, bool]) -> None:  # noqa: B027 - optional
        """Set all feature gates; called once at the start."""

    def measure(self, metrics: Metrics) -> None:  # noqa: B027 - optional
        """Register the extension's own metrics; called once at the start.

        All actuators of a process share `metrics`.
        """

    @abstractmethod
    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create and update everything that the resource describes."""

    @abstractmethod
    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete everything that was created, and return once it is gone."""

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete whatever can be deleted at once; succeed even if something is left behind."""
        return await self.delete(context, obj)

    @abstractmethod
    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave the seed: keep the objects in the Shoot, and return the state for the next seed."""

    async def restore(self, context: Context, obj: JsonObject) -> Status | None:
        """Continue on another seed, with the state from `migrate` in `status.state`."""
        return await self.reconcile(context, obj)

    def health_checks(self) -> Sequence[HealthCheck]:
        """Return the health checks behind the conditions of the resources; none by default."""
        return ()

    def companions(self, client: Client, metrics: Metrics) -> Sequence[Unit]:
        """Return controllers of the extension's own, which the leader runs; none by default.

        Args:
            client: for the seed.
        """
        return ()

    def webhooks(self, seed: Seed) -> Sequence[Webhook]:
        """Return the webhooks for objects on the seed and in Shoots; none by default.

        They are served wherever the controller of the actuator runs.

        Args:
            seed: for reads on the seed.
        """
        return ()

    @classmethod
    def has_webhooks(cls) -> bool:
        """Return whether the extension has webhooks on the seed or in Shoots."""
        return cls.webhooks is not Actuator.webhooks

    def admission_webhooks(self, garden: Garden) -> Sequence[Webhook]:
        """Return the webhooks for objects of the garden, such as Shoots; none by default.

        A separate process serves them: `pergola extension admission`.

        Args:
            garden: for lookups in the garden.
        """
        return ()

    @classmethod
    def shoot_webhooks_resource(cls) -> str:
        """Return the name of the ManagedResource that registers the webhooks for Shoots."""
        return f"extension-{cls.type}-shoot-webhooks"

    @classmethod
    def shoot_namespaces(cls) -> Mapping[str, str]:
        """Return the labels of namespaces in which that ManagedResource is the extension's own.

        Other extensions may have one of the same name. All namespaces by default.
        """
        return {}

    @classmethod
    def cluster_name(cls, key: Key) -> str:
        """Return the name of a resource's Cluster; empty if it has none.

        Called only for resources of the class `shoot`: others never have a Cluster.
        """
        return key.namespace

    @classmethod
    def gvk(cls) -> GroupVersionKind:
        """Return the kind with its group and version."""
        return GroupVersionKind(GROUP, VERSION, cls.kind)


def deadline_of(actuator: Actuator) -> float:
    """Return the time limit of one run of an actuator, in seconds."""
    return actuator.deadline or _DEADLINES_OF_KINDS.get(actuator.kind, _DEADLINE_SECONDS)
