"""Stops the controllers of a hibernated Shoot once its API server is gone (spec 31 §6).

The caller reconciles a ControlPlane before it stops the API server, because controllers may have to
prepare the hibernation; it does not request another reconciliation afterwards.
"""

from typing import Final

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.cluster import CLUSTER, Cluster, MalformedCluster
from pergola.extension_api.predicates import Predicate, needs_run, snapshot
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "controlplane-hibernation"
API_SERVER: Final = "kube-apiserver"
_SOON: Final = 2.0
_DEADLINE: Final = 240.0


def hibernation_controller(
    actuator: Actuator, client: Client, *, metrics: Metrics, clock: Clock | None = None
) -> Unit:
    """Return the controller that reconciles a ControlPlane when its Shoot's API server stops."""
    hibernation = Hibernation(actuator, client, clock or SystemClock())
    controller: Workers[Key] = Workers(
        NAME, hibernation.reconcile, workers=5, metrics=metrics, deadline=_DEADLINE
    )
    # The value is whether the API server is gone.
    servers = Cache(client, DEPLOYMENT, _is_stopped, fields=select_name(API_SERVER))

    def on_server(change: Change[bool]) -> None:
        if change.new and not change.old:
            controller.queue.add(Key("", change.key.namespace))

    servers.subscribe(on_server)
    return Unit(NAME, caches=[servers], controllers=[controller])


class Hibernation:
    """The reconciler of that controller; its keys are Clusters."""

    def __init__(self, actuator: Actuator, client: Client, clock: Clock) -> None:
        self._actuator = actuator
        self._client = client
        self._clock = clock
        self._predicate = Predicate(actuator.type)

    async def reconcile(self, key: Key) -> Outcome:
        """Stop the controllers of one control plane."""
        try:
            cluster = Cluster.from_object(await self._client.get(CLUSTER, key))
        except (NotFound, MalformedCluster):
            return DONE
        shoot = cluster.shoot
        if shoot is None or not shoot.hibernation_enabled or shoot.is_failed:
            return DONE  # a failed Shoot is reconciled again when its owner retries
        for obj in await self._client.list(self._actuator.gvk(), key.name):
            seen = snapshot(obj)
            if not self._predicate.is_responsible(seen) or seen.is_deleting:
                continue
            if _is_under_way(obj):
                return Again(_SOON)  # it may have read an earlier state
            if needs_run(seen):
                continue  # the next run reads that the API server is gone
            await self._actuator.reconcile(self._context(cluster), obj)
        return DONE

    def _context(self, cluster: Cluster) -> Context:
        return Context(
            client=self._client,
            cluster=cluster,
            namespace=cluster.name,
            clock=self._clock,
            progress=_ignore_progress,
            save=_ignore_status,
        )


def _is_under_way(control_plane: JsonObject) -> bool:
    return map_at(control_plane, "status", "lastOperation").get("state") == "Processing"


def _is_stopped(server: JsonObject) -> bool:
    return map_at(server, "spec").get("replicas") == 0


async def _ignore_progress(percent: int, sentence: str) -> None:
    """Report nothing: no caller waits."""


async def _ignore_status(fields: Status) -> None:
    """Save nothing: the status does not change."""
