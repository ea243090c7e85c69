"""The external manager: fills InfraClusters from existing networks (spec 50 §5).

It handles only InfraClusters whose annotation has its own name. It never creates, changes or
deletes any part of a network; when an InfraCluster is deleted, there is nothing to clean up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pergola.api.cluster_api import CLUSTER
from pergola.api.objects import JsonObject, Key
from pergola.controllers.condition_metrics import ConditionMetrics
from pergola.externally_managed.conditions import READY
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.mapping import infra_clusters
from pergola.externally_managed.predicate import manager_of
from pergola.externally_managed.reconcile import ExternalManager
from pergola.externally_managed.source_watches import SourceWatches
from pergola.externally_managed.sources import Source
from pergola.externally_managed.spec_writer import SpecWriter
from pergola.externally_managed.status_writer import StatusWriter
from pergola.health.conditions import NOTHING, Reported, condition, has_status
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Events, Watch
from pergola.runtime.metrics import Metrics

NAME: Final = "pergola"
RESYNC_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The responsibility of an external manager.

    Attributes:
        name: the value of the annotation on its InfraClusters.
        namespace: the namespace of its InfraClusters; all namespaces if empty.
    """

    name: str = NAME
    namespace: str = ""
    workers: int = 5
    resync_seconds: float = RESYNC_SECONDS


def external_manager(
    client: Client,
    managed: Managed,
    sources: Mapping[str, Source],
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the external manager of one kind.

    Args:
        sources: by the first part of the annotation `infrastructure.pergola.dev/source`; `plain` is
            for networks described in ConfigMaps and Secrets.
    """
    objects = Cache(client, managed.gvk, _whole, namespace=settings.namespace or None)
    clusters = Cache(client, CLUSTER, _whole, namespace=settings.namespace or None)
    recorder = Recorder(client, "infra-manager", clock=clock)
    status = StatusWriter(settings.name, client, managed, objects, recorder, clock or SystemClock())
    reconciler = ExternalManager(
        settings.name,
        managed,
        sources,
        (objects, clusters),
        (SpecWriter(client, managed, objects), status),
        resync_seconds=settings.resync_seconds,
    )
    conditions = metrics.register(ConditionMetrics)
    sources_changed: Events[Key] = Events()
    watches = SourceWatches(client, objects, settings.name, sources_changed.notify)
    return Controller(
        f"infra-manager-{managed.gvk.kind.lower()}",
        reconciler.reconcile,
        watches=[
            Watch(objects),
            Watch(clusters, to=lambda change: infra_clusters(change, managed.gvk.group_kind)),
            Watch(sources_changed, to=lambda key: (key,)),
        ],
        metrics=metrics,
        workers=settings.workers,
        deadline=180.0,
        tasks=[
            recorder.run,
            watches.run,
            lambda: conditions.following(objects, partial(_ready, settings.name)),
        ],
    )


def _ready(name: str, obj: JsonObject) -> Reported:
    """Return the condition that this manager writes; a provider may have left others."""
    if manager_of(obj) != name or condition(obj, READY) is None:
        return NOTHING
    return Reported(1, () if has_status(obj, READY, "True") else (READY,))


def _whole(obj: JsonObject) -> JsonObject:
    return obj
