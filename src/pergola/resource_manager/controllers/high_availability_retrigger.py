"""Lets the API server ask the high-availability webhook again when its answer would be another one.

A webhook is asked when an object is written. When a namespace's annotations, an autoscaler or the
number of nodes change, nobody writes the objects that depend on them (spec 11 §7.2, spec 12 Beyond
3). Here the same function is asked about each of them; where it would change something, an empty
patch makes the API server ask, too.

The replica that the API server asks may hear of the change a moment later than this one. What is
still not as it should be after the patch is looked at again, a few times.
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
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, Invalid, KubeError, NotFound, UnknownKind
from pergola.resource_manager.webhooks.high_availability_config.observe import (
    ClusterSurroundings,
    Scaled,
)
from pergola.resource_manager.webhooks.high_availability_config.review import HighAvailability
from pergola.resource_manager.webhooks.high_availability_config.settings import (
    SKIP,
    NamespaceSettings,
)
from pergola.resource_manager.webhooks.high_availability_config.spread import HOST_KEY
from pergola.resource_manager.webhooks.high_availability_config.spread import PATH as CONSTRAINTS
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.controller import DONE, Again, Controller, Outcome, ReconcileError
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
    """What is looked at again.

    Attributes:
        only_spread: only objects that are spread over hosts, because only nodes have changed.
    """

    namespace: str
    only_spread: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says.

    Attributes:
        only_managed: only objects that are labelled as ours; so where the webhook is asked about
            those only.
        pauses: seconds after which objects that a patch left as they were are looked at again.
        settling: seconds after which the end of an autoscaler counts. What it scaled would lose
            replicas, though it may just be replaced by another one.
    """

    only_managed: bool = False
    pauses: tuple[float, ...] = (5.0, 30.0)
    settling: float = 30.0


def high_availability_retrigger(
    client: Client,
    around: ClusterSurroundings,
    handler: HighAvailability,
    settings: Settings,
    *,
    metrics: Metrics,
) -> Unit:
    """The controller, on the cluster whose API server asks the webhook.

    Args:
        around: its caches have to be run by somebody else: they are those of the webhook.
    """
    reconciler = Retrigger(client, around, handler, settings)
    controller = Controller(
        NAME, reconciler.reconcile, workers=1, metrics=metrics, deadline=_DEADLINE
    )
    wakes = _Wakes(around, controller, settings)
    around.namespaces.subscribe(wakes.on_namespace)
    around.nodes.subscribe(wakes.on_node)
    for cache in around.autoscalers:
        cache.subscribe(wakes.on_autoscaler)
    return Unit(controllers=[controller])


class Retrigger:
    """The reconciler of one namespace."""

    def __init__(
        self,
        client: Client,
        around: ClusterSurroundings,
        handler: HighAvailability,
        settings: Settings,
    ) -> None:
        self._client = client
        self._around = around
        self._handler = handler
        self._pauses = settings.pauses
        labels = f"!{SKIP}"
        self._labels = f"{labels},{marks.MANAGED_BY}=gardener" if settings.only_managed else labels
        self._tried: Counter[Wake] = Counter()

    async def reconcile(self, wake: Wake) -> Outcome:
        """Asks about each object of a namespace, and patches those that would become another."""
        await self._around.synced()
        if self._around.namespaces.get(Key("", wake.namespace)) is None:
            return DONE
        unmoved, problems = 0, []
        for gvk, plural in _KINDS[:2] if wake.only_spread else _KINDS:
            for obj in await self._listed(gvk, wake):
                try:
                    unmoved += await self._look(obj, gvk, plural)
                except (KubeError, ReconcileError) as error:
                    problems.append(f"{gvk.kind} {Key.of(obj)}: {error}")
        if problems:
            raise ReconcileError("; ".join(problems))
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

    async def _look(self, obj: JsonObject, gvk: GroupVersionKind, plural: str) -> bool:
        """Whether the object is not as it should be, also after a patch."""
        verdict = await self._verdict(obj, gvk, plural)
        if not verdict.edits:
            return False
        try:
            patched = await self._client.patch(gvk, Key.of(obj), {})
        except NotFound:
            return False
        except (Forbidden, Invalid) as error:
            # Neither is better when it is tried again, and other objects must not wait for it.
            log.error("refused", object=f"{gvk.kind} {Key.of(obj)}", error=str(error))
            return False
        changed = [edit.path for edit in verdict.edits]
        log.info("asked again", object=f"{gvk.kind} {Key.of(obj)}", changed=changed)
        return bool((await self._verdict(patched, gvk, plural)).edits)

    async def _verdict(self, obj: JsonObject, gvk: GroupVersionKind, plural: str) -> Verdict:
        """What the webhook would say; what it would refuse has no edits, and needs no patch."""
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
    """Which change wants which namespaces to be looked at."""

    def __init__(
        self, around: ClusterSurroundings, controller: Controller[Wake], settings: Settings
    ) -> None:
        self._around = around
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
        many = len(self._around.nodes) > 1
        if many == self._many or not self._around.nodes.is_synced:
            return
        self._many = many
        for name in [key.name for key, _ in self._around.namespaces.items()]:
            self._queue.add(Wake(name, only_spread=True))


def _is_spread(obj: JsonObject) -> bool:
    return any(c.get("topologyKey") == HOST_KEY for c in maps_at(obj, *CONSTRAINTS))
