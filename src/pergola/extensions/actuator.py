"""What an author of an extension writes (spec 40 §3.1)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.kinds import GROUP, VERSION
from pergola.extensions.health_checks.checks import HealthCheck
from pergola.kube.client import Client
from pergola.runtime.clock import Clock
from pergola.runtime.metrics import Metrics

if TYPE_CHECKING:  # webhooks are made of actuators
    from pergola.extensions.webhooks.declare import Webhook
    from pergola.extensions.webhooks.garden import Garden


Status = JsonObject
"""Fields of `status` that an actuator sets: `providerStatus`, `state`, `resources`, `ipFamilies`, …

The SDK writes them in one patch with the outcome. `lastOperation`, `lastError`, `conditions` and
`observedGeneration` are its own.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an actuator works with, made anew for each run.

    Attributes:
        client: of the seed, where the extension resource lives.
        cluster: the Shoot that it belongs to; None for the classes `seed` and `garden`.
        namespace: of the extension resource.
        progress: tells percent and a sentence, which the SDK writes to `lastOperation`; a call that
            comes soon after another may be skipped, and one that fails is forgotten.
        save: writes fields of `status` at once, such as `state` after something was created.
    """

    client: Client
    cluster: Cluster | None
    namespace: str
    clock: Clock
    progress: Callable[[int, str], Awaitable[None]]
    save: Callable[[Status], Awaitable[None]]


class Actuator:
    """Makes of one kind and type of extension resource what it asks for.

    Every method can be cancelled at any await and is called again later, so it is idempotent. What
    it raises is written to `status.lastError` and retried: an `ExtensionError` for the user, a
    `RequeueAfter` to come back at a given time, anything else as a defect.

    Attributes:
        kind: of the resources, such as `Network`.
        type: of the resources: `spec.type`.
        name: of the extension, such as `networking-calico`: what its heartbeat is held by.
        feature_gates: what an operator may switch on or off for all resources, with the defaults;
            `configure` is told.
        rules: of a ClusterRole: what it may do on the seed besides what every extension may.
        shoot_webhooks: what registers those of `webhooks()` that are for Shoots there, for an
            actuator to bring into them as ManagedResource `extension-<type>-shoot-webhooks`. Set
            by the process that serves them; None while nobody does.
    """

    kind: ClassVar[str]
    type: ClassVar[str]
    name: ClassVar[str]
    feature_gates: ClassVar[Mapping[str, bool]] = {}
    rules: ClassVar[Sequence[JsonObject]] = ()
    shoot_webhooks: Callable[[], Awaitable[Sequence[JsonObject]]] | None = None

    def configure(self, gates: Mapping[str, bool]) -> None:
        """Takes over the feature gates, all that it has; called once before anything runs."""

    def measure(self, metrics: Metrics) -> None:
        """Takes `further` metrics, besides what the SDK has of every extension; none by default.

        Called once before anything runs; other actuators of the process are given the same.
        """

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Creates and updates everything that the resource asks for."""
        raise NotImplementedError

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Removes everything that was created, and returns when it is gone."""
        raise NotImplementedError

    async def force_delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Removes what can be removed at once; succeeds even if something is left behind."""
        return await self.delete(context, obj)

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leaves the seed: keeps what is in the Shoot, and tells what the next seed has to know."""
        raise NotImplementedError

    async def restore(self, context: Context, obj: JsonObject) -> Status | None:
        """Arrives at a seed, with what `migrate` told in `status.state`."""
        return await self.reconcile(context, obj)

    def health_checks(self) -> Sequence[HealthCheck]:
        """What is looked at for the conditions of the resources; nothing unless overridden."""
        return ()

    def webhooks(self) -> Sequence["Webhook"]:
        """What the extension says to changes of others' objects; nothing unless overridden."""
        return ()

    def admission_webhooks(self, garden: "Garden") -> Sequence["Webhook"]:
        """What the extension says to objects of the garden, such as Shoots; nothing by default.

        They are served by a process of their own, `pergola extension admission`.

        Args:
            garden: what can be looked up there.
        """
        return ()

    @classmethod
    def gvk(cls) -> GroupVersionKind:
        """The kind with its group and version."""
        return GroupVersionKind(GROUP, VERSION, cls.kind)
