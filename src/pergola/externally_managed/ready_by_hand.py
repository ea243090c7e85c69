"""Infrastructure that a person declares ready, where no controller can (spec 50 §7).

For InfraClusters whose network was made by hand or by a tool that does not speak to the API server:
an annotation sets what only a status can say. Whatever another manager has said is left alone.
"""

from typing import Final

from pergola.api.cluster_api import CLUSTER, MANAGED_BY, READY_BY_HAND
from pergola.api.conditions import get_condition
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    resource_version_of,
)
from pergola.externally_managed.conditions import READY, conditions_of
from pergola.externally_managed.contract import ContractError, endpoint_of, is_provisioned
from pergola.externally_managed.manager import Managed, Settings
from pergola.externally_managed.mapping import infrastructure_reference, owner_cluster
from pergola.externally_managed.predicate import is_paused, manager_of
from pergola.externally_managed.status import Outcome, status_patch
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling import controller as runtime
from pergola.runtime.controlling.controller import DONE, Controller
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

MARKED: Final = "MarkedReadyByUser"
WITHDRAWN: Final = "MarkWithdrawnByUser"
INVALID: Final = "MarkInvalid"
NO_ENDPOINT: Final = "EndpointMissing"
_OURS: Final = (MARKED, WITHDRAWN, INVALID, NO_ENDPOINT)


def ready_by_hand(
    client: Client,
    managed: Managed,
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """The controller for one kind.

    Args:
        settings: InfraClusters of `settings.name` are left to the external manager.
    """
    objects = Cache(client, managed.gvk, _whole, namespace=settings.namespace)
    clusters = Cache(client, CLUSTER, _whole, namespace=settings.namespace)
    recorder = Recorder(client, "ready-by-hand-controller", clock=clock)
    reconciler = ReadyByHand(client, managed, settings, objects, clusters, recorder, clock)
    controller = Controller(
        f"ready-by-hand-{managed.gvk.kind.lower()}",
        reconciler.reconcile,
        workers=settings.workers,
        metrics=metrics,
        deadline=180.0,
    )
    objects.subscribe(lambda change: controller.queue.add(change.key))

    def on_cluster(change: Change[JsonObject]) -> None:
        reference = infrastructure_reference(change.new) if change.new is not None else None
        if reference and reference[0] == managed.gvk.group_kind:
            controller.queue.add(reference[1])

    clusters.subscribe(on_cluster)
    return Unit(caches=[objects, clusters], controllers=[controller], tasks=[recorder.run])


class ReadyByHand:
    """The reconciler of one kind."""

    def __init__(
        self,
        client: Client,
        managed: Managed,
        settings: Settings,
        objects: Cache[JsonObject],
        clusters: Cache[JsonObject],
        recorder: Recorder,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._managed = managed
        self._settings = settings
        self._objects = objects
        self._clusters = clusters
        self._recorder = recorder
        self._clock = clock or SystemClock()

    async def reconcile(self, key: Key) -> runtime.Outcome:
        """Says of one InfraCluster what its annotation says."""
        obj = self._objects.get(key)
        if obj is None or deletion_timestamp_of(obj) is not None:
            return DONE
        manager = manager_of(obj)
        if manager is None:
            self._warn(obj)
            return DONE
        owner = owner_cluster(obj)
        cluster = self._clusters.get(owner) if owner else None
        if manager == self._settings.name or is_paused(obj, cluster) or self._is_anothers(obj):
            return DONE
        outcome = self._outcome(obj, cluster)
        if outcome is not None:
            await self._report(obj, outcome)
        return DONE

    def _outcome(self, obj: JsonObject, cluster: JsonObject | None) -> Outcome | None:
        value = annotations_of(obj).get(READY_BY_HAND)
        marked = self._reason(obj) in (MARKED, WITHDRAWN)
        if value is None:
            return Outcome(WITHDRAWN) if marked else None
        if value != "true":
            return Outcome(
                INVALID, [f'annotation {READY_BY_HAND} is "{value}"; only "true" marks it ready']
            )
        if endpoint_of(obj).is_valid or (cluster is not None and endpoint_of(cluster).is_valid):
            return Outcome(MARKED)
        return Outcome(
            NO_ENDPOINT,
            ["set host and port of spec.controlPlaneEndpoint, here or on the Cluster"],
        )

    def _is_anothers(self, obj: JsonObject) -> bool:
        """Whether another manager has said something about readiness already."""
        reason = self._reason(obj)
        if reason is not None:
            return reason not in _OURS
        try:
            return is_provisioned(obj, self._managed.contract.version)
        except ContractError:
            return True

    def _reason(self, obj: JsonObject) -> str | None:
        condition = get_condition(conditions_of(obj), READY)
        return str(condition.get("reason", "")) if condition else None

    def _warn(self, obj: JsonObject) -> None:
        if READY_BY_HAND in annotations_of(obj):
            self._recorder.warning(
                Regarding.of(obj),
                "NotExternallyManaged",
                f"annotation {READY_BY_HAND} has no effect without {MANAGED_BY}: the provider is "
                "in charge of this object",
            )

    async def _report(self, obj: JsonObject, outcome: Outcome) -> None:
        patch = status_patch(obj, self._managed.contract, outcome, self._clock.now())
        if patch:
            written = await self._client.patch(
                self._managed.gvk,
                Key.of(obj),
                {"metadata": {"resourceVersion": resource_version_of(obj)}, "status": patch},
                subresource="status",
            )
            self._objects.observe(written)


def _whole(obj: JsonObject) -> JsonObject:
    return obj
