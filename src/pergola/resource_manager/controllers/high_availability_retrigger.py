"""Re-evaluation of the high-availability webhook when its inputs change.

The API server calls a webhook when an object is written. When a namespace's annotations, an
autoscaler or the number of nodes change, dependent objects are not written (spec 11 §7.2, spec 12
Beyond 3). This controller calls the webhook's function for each of them; if it would change an
object, an empty patch makes the API server call the webhook.

The replica that the API server calls may learn of the change later than this one, so an object that
still differs after the patch is checked again a few times.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.admission.review import (
    INTERNAL_ERROR,
    GroupVersionResource,
    Request,
    Verdict,
)
from pergola.api import marks
from pergola.api.kinds import DEPLOYMENT, HPA, HVPA, STATEFUL_SET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    maps_at,
)
from pergola.api.texts import abridged
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, Invalid, KubeError, NotFound, UnknownKind
from pergola.resource_manager.webhooks.facts.environment import (
    ClusterEnvironment,
    Scaled,
)
from pergola.resource_manager.webhooks.facts.high_availability import (
    SKIP,
    NamespaceSettings,
)
from pergola.resource_manager.webhooks.high_availability_config.review import HighAvailability
from pergola.resource_manager.webhooks.high_availability_config.spread import HOST_KEY
from pergola.resource_manager.webhooks.high_availability_config.spread import PATH as CONSTRAINTS
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("high-availability")

NAME: Final = "node-high-availability-config"
_DEADLINE: Final = 180.0
_KINDS: Final = (
    (DEPLOYMENT, "deployments"),
    (STATEFUL_SET, "statefulsets"),
    (HPA, "horizontalpodautoscalers"),
    (HVPA, "hvpas"),
)


class Wake(NamedTuple):
    """The objects to re-evaluate.

    Attributes:
        only_spread: Only objects that are spread over hosts, because only nodes have changed.
    """

    namespace: str
    only_spread: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller.

    Attributes:
        only_managed: Only objects with our label, if the webhook is registered only for those.
        pauses: The delays in seconds before objects that a patch did not change are checked again.
        settling: The delay in seconds before the deletion of an autoscaler takes effect. Its
            workload would lose replicas, although the autoscaler may be about to be replaced.
    """

    only_managed: bool = False
    pauses: tuple[float, ...] = (5.0, 30.0)
    settling: float = 30.0


def high_availability_retrigger(
    client: Client,
    environment: ClusterEnvironment,
    handler: HighAvailability,
    settings: Settings,
    *,
    metrics: Metrics,
) -> Unit:
    """Return the controller, for the cluster whose API server calls the webhook.

    Args:
        environment: the caches of the webhook, which run as part of it.
    """
    reconciler = Retrigger(client, environment, handler, settings)
    controller = Workers(NAME, reconciler.reconcile, workers=1, metrics=metrics, deadline=_DEADLINE)
    wakes = _Wakes(environment, controller, settings)
    environment.namespaces.subscribe(wakes.on_namespace)
    environment.nodes.subscribe(wakes.on_node)
    for cache in environment.autoscalers:
        cache.subscribe(wakes.on_autoscaler)
    return Unit(controllers=[controller])


class Retrigger:
    """The reconciler of one namespace."""

    def __init__(
        self,
        client: Client,
        environment: ClusterEnvironment,
        handler: HighAvailability,
        settings: Settings,
    ) -> None:
        self._client = client
        self._environment = environment
        self._handler = handler
        self._pauses = settings.pauses
        labels = f"!{SKIP}"
        self._labels = f"{labels},{marks.MANAGED_BY}=gardener" if settings.only_managed else labels
        self._tried: Counter[Wake] = Counter()

    async def reconcile(self, wake: Wake) -> Outcome:
        """Evaluate each object of a namespace, and patch those that the webhook would change."""
        await self._environment.synced()
        if self._environment.namespaces.get(Key("", wake.namespace)) is None:
            return DONE
        unmoved, problems = 0, []
        for gvk, plural in _KINDS[:2] if wake.only_spread else _KINDS:
            for obj in await self._listed(gvk, wake):
                try:
                    unmoved += await self._observe(obj, gvk, plural)
                except (KubeError, ReconcileError) as error:
                    problems.append(f"{gvk.kind} {Key.of(obj)}: {error}")
        if problems:
            raise ReconcileError(abridged(problems, separator="; "))
        return self._outcome(wake, unmoved)

    async def _listed(self, gvk: GroupVersionKind, wake: Wake) -> list[JsonObject]:
        try:
            objects = await self._client.list(gvk, wake.namespace, labels=self._labels)
        except UnknownKind:
            return []
        return [
            obj
            for obj in objects
            if deletion_timestamp_of(obj) is None and (_is_spread(obj) or not wake.only_spread)
        ]

    async def _observe(self, obj: JsonObject, gvk: GroupVersionKind, plural: str) -> bool:
        """Return whether the object still differs from the webhook's result after a patch."""
        verdict = await self._verdict(obj, gvk, plural)
        if not verdict.edits:
            return False
        try:
            patched = await self._client.patch(gvk, Key.of(obj), {})
        except NotFound:
            return False
        except (Forbidden, Invalid) as error:
            # A retry would not help, and must not delay other objects.
            log.error("refused", object=f"{gvk.kind} {Key.of(obj)}", error=str(error))
            return False
        changed = [edit.path for edit in verdict.edits]
        log.info("asked again", object=f"{gvk.kind} {Key.of(obj)}", changed=changed)
        return bool((await self._verdict(patched, gvk, plural)).edits)

    async def _verdict(self, obj: JsonObject, gvk: GroupVersionKind, plural: str) -> Verdict:
        """Return the webhook's verdict; a refusal has no edits."""
        key = Key.of(obj)
        verdict = await self._handler(
            Request(
                uid="",
                operation="UPDATE",
                kind=gvk,
                resource=GroupVersionResource(gvk.group, gvk.version, plural),
                namespace=key.namespace,
                name=key.name,
                object=obj,
                old_object=obj,
            )
        )
        if verdict.code >= INTERNAL_ERROR:
            raise ReconcileError(verdict.message)
        return verdict

    def _outcome(self, wake: Wake, unmoved: int) -> Outcome:
        tried = self._tried.pop(wake, 0)
        if not unmoved:
            return DONE
        if tried < len(self._pauses):
            self._tried[wake] = tried + 1
            return Again(self._pauses[tried])
        log.error(
            "objects stay as they are; is the webhook registered, and on the same configuration?",
            namespace=wake.namespace,
            objects=unmoved,
        )
        return DONE


class _Wakes:
    """The triggers: which changes enqueue which namespaces."""

    def __init__(
        self, environment: ClusterEnvironment, controller: Workers[Wake], settings: Settings
    ) -> None:
        self._environment = environment
        self._queue = controller.queue
        self._settling = settings.settling
        self._many: bool | None = None

    def on_namespace(self, change: Change[NamespaceSettings]) -> None:
        if change.new is not None and change.new != change.old:
            self._queue.add(Wake(change.key.name, only_spread=False))

    def on_autoscaler(self, change: Change[Scaled | None]) -> None:
        if change.new == change.old or change.initial:
            return
        wake = Wake(change.key.namespace, only_spread=False)
        if change.old is not None and (change.new is None or change.new[:3] != change.old[:3]):
            self._queue.add_after(wake, self._settling)
        if change.new is not None:
            self._queue.add(wake)

    def on_node(self, _: Change[None]) -> None:
        many = len(self._environment.nodes) > 1
        if many == self._many or not self._environment.nodes.is_synced:
            return
        self._many = many
        for name in [key.name for key, _ in self._environment.namespaces.items()]:
            self._queue.add(Wake(name, only_spread=True))


def _is_spread(obj: JsonObject) -> bool:
    return any(c.get("topologyKey") == HOST_KEY for c in maps_at(obj, *CONSTRAINTS))
