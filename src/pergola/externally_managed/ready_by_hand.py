"""The controller for infrastructure that users mark as ready themselves (spec 50 §7).

It is for InfraClusters whose network was created manually, or by a tool that does not write to the
API server: with an annotation, users set the status, which normally only a controller writes.
"""

from pergola.api.cluster_api import CLUSTER
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.manager import Settings
from pergola.externally_managed.mapping import infra_clusters, owner_cluster
from pergola.externally_managed.mark import Ignored, decide_mark
from pergola.externally_managed.predicate import is_externally_managed, is_paused
from pergola.externally_managed.status_writer import StatusWriter
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling import controller as runtime
from pergola.runtime.controlling.controller import DONE
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics


def ready_by_hand(
    client: Client,
    managed: Managed,
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the controller of one kind.

    Args:
        settings: the external manager handles the InfraClusters of `settings.name`.
    """
    objects = Cache(client, managed.gvk, _whole, namespace=settings.namespace or None)
    clusters = Cache(client, CLUSTER, _whole, namespace=settings.namespace or None)
    recorder = Recorder(client, "ready-by-hand-controller", clock=clock)
    status = StatusWriter(settings.name, client, managed, objects, recorder, clock or SystemClock())
    reconciler = ReadyByHand(settings.name, managed, (objects, clusters), status, recorder)
    return Controller(
        f"ready-by-hand-{managed.gvk.kind.lower()}",
        reconciler.reconcile,
        watches=[
            Watch(objects),
            Watch(clusters, to=lambda change: infra_clusters(change, managed.gvk.group_kind)),
        ],
        metrics=metrics,
        workers=settings.workers,
        deadline=180.0,
        tasks=[recorder.run],
    )


class ReadyByHand:
    """The reconciler of one kind.

    Args:
        name: the external manager of this process, whose InfraClusters are skipped.
    """

    def __init__(
        self,
        name: str,
        managed: Managed,
        caches: tuple[Cache[JsonObject], Cache[JsonObject]],
        status: StatusWriter,
        recorder: Recorder,
    ) -> None:
        self._name = name
        self._managed = managed
        self._objects, self._clusters = caches
        self._status = status
        self._recorder = recorder

    async def reconcile(self, key: Key) -> runtime.Outcome:
        """Write the effect of one InfraCluster's annotation to its status."""
        obj = self._objects.get(key)
        if obj is None or deletion_timestamp_of(obj) is not None:
            return DONE
        owner = owner_cluster(obj)
        cluster = self._clusters.get(owner) if owner else None
        if is_externally_managed(obj) and is_paused(obj, cluster):
            return DONE
        managed = self._managed
        decision = decide_mark(obj, cluster, managed.contract, managed.finalizers, self._name)
        if isinstance(decision, Ignored):
            self._recorder.warning(Regarding.of(obj), decision.reason, decision.note)
        elif decision is not None:
            await self._status.patch_outcome(obj, decision)
        return DONE


def _whole(obj: JsonObject) -> JsonObject:
    return obj
