"""Lets the API server ask the high-availability webhook again when its answer would be another one.

A webhook is asked when an object is written. When a namespace's annotations, an autoscaler or the
number of nodes change, nobody writes the objects that depend on them (spec 11 §7.2, spec 12 Beyond
3). Here the same function is asked about each of them; where it would change something, an empty
patch makes the API server ask, too.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    maps_at,
)
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound, UnknownKind
from pergola.resource_manager.webhooks.high_availability_config.observe import (
    HPA,
    HVPA,
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
from pergola.runtime.cache import Change
from pergola.runtime.controller import DONE, Controller, Outcome, ReconcileError
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.unit import Unit

log = get_logger("high-availability")

NAME: Final = "node-high-availability-config"
_DEADLINE: Final = 180.0
_KINDS: Final = (
    (GroupVersionKind("apps", "v1", "Deployment"), "deployments"),
    (GroupVersionKind("apps", "v1", "StatefulSet"), "statefulsets"),
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
    """

    only_managed: bool = False


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
        around: its caches have to run already: they are those of the webhook.
    """
    reconciler = Retrigger(client, handler, settings)
    controller = Controller(
        NAME, reconciler.reconcile, workers=1, metrics=metrics, deadline=_DEADLINE
    )
    wakes = _Wakes(around, controller)
    around.namespaces.subscribe(wakes.on_namespace)
    around.nodes.subscribe(wakes.on_node)
    for cache in around.autoscalers:
        cache.subscribe(wakes.on_autoscaler)
    return Unit(controllers=[controller])


class Retrigger:
    """The reconciler of one namespace."""

    def __init__(self, client: Client, handler: HighAvailability, settings: Settings) -> None:
        self._client = client
        self._handler = handler
        labels = f"!{SKIP}"
        self._labels = f"{labels},{marks.MANAGED_BY}=gardener" if settings.only_managed else labels

    async def reconcile(self, wake: Wake) -> Outcome:
        """Asks about each object of a namespace, and patches those that would become another."""
        problems: list[str] = []
        for gvk, plural in _KINDS[:2] if wake.only_spread else _KINDS:
            try:
                objects = await self._client.list(gvk, wake.namespace, labels=self._labels)
            except UnknownKind:
                continue
            for obj in objects:
                if wake.only_spread and not _is_spread(obj):
                    continue
                try:
                    await self._look(obj, gvk, plural)
                except KubeError as error:
                    problems.append(f"{gvk.kind} {Key.of(obj)}: {error}")
        if problems:
            raise ReconcileError("; ".join(problems))
        return DONE

    async def _look(self, obj: JsonObject, gvk: GroupVersionKind, plural: str) -> None:
        if deletion_timestamp_of(obj) is not None:
            return
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
        if not _would_change(verdict):
            return
        try:
            await self._client.patch(gvk, key, {})
        except NotFound:
            return
        log.info("asked again", object=f"{gvk.kind} {key}", changed=[e.path for e in verdict.edits])


class _Wakes:
    """Which change wants which namespaces to be looked at."""

    def __init__(self, around: ClusterSurroundings, controller: Controller[Wake]) -> None:
        self._around = around
        self._queue = controller.queue
        self._many: bool | None = None

    def on_namespace(self, change: Change[NamespaceSettings]) -> None:
        if change.new is not None and change.new != change.old:
            self._queue.add(Wake(change.key.name, only_spread=False))

    def on_autoscaler(self, change: Change[Scaled | None]) -> None:
        is_considered = self._around.namespaces.get(Key("", change.key.namespace)) is not None
        if change.new != change.old and is_considered and not change.initial:
            self._queue.add(Wake(change.key.namespace, only_spread=False))

    def on_node(self, _: Change[None]) -> None:
        many = len(self._around.nodes) > 1
        if many == self._many or not self._around.nodes.is_synced:
            return
        self._many = many
        for name in [key.name for key, _ in self._around.namespaces.items()]:
            self._queue.add(Wake(name, only_spread=True))


def _is_spread(obj: JsonObject) -> bool:
    return any(c.get("topologyKey") == HOST_KEY for c in maps_at(obj, *CONSTRAINTS))


def _would_change(verdict: Verdict) -> bool:
    return verdict.allowed and bool(verdict.edits)
