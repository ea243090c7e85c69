"""Follows updates in place that users start, machine by machine (spec 31 §1).

A user selects a node for its update. The Worker is then reconciled, as if its caller had requested
it, so that its status says whether the pool is up to date.
"""

from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.kinds import MACHINE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at
from pergola.extension_api.predicates import Predicate, snapshot
from pergola.extensions.actuator import Actuator
from pergola.extensions.workers.deployments import WORKER_LABEL
from pergola.extensions.workers.pool import MANUAL_IN_PLACE
from pergola.extensions.workers.rollout import CANDIDATE, UPDATE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Again, Outcome, Workers
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "worker-updates"
_SOON: Final = 2.0
_DEADLINE: Final = 60.0


class Updated(NamedTuple):
    """The progress of an update in place.

    Attributes:
        worker: the name of its Worker.
        state: the reason of its condition; empty if no update is due.
    """

    worker: str
    state: str

    @property
    def is_started(self) -> bool:
        """Whether a user has started the update."""
        return self.state not in ("", CANDIDATE)


def updates_controller(actuator: Actuator, client: Client, *, metrics: Metrics) -> Unit:
    """Return the controller that requests a run of Workers whose machines are being updated."""
    updates = _Updates(actuator, client)
    controller: Workers[Key] = Workers(
        NAME, updates.reconcile, workers=1, metrics=metrics, deadline=_DEADLINE
    )
    machines = Cache(client, MACHINE, _read, labels=WORKER_LABEL)

    def on_machine(change: Change[Updated]) -> None:
        was_started = change.old is not None and change.old.is_started
        if change.new is not None and change.new.is_started and not was_started:
            controller.queue.add(Key(change.key.namespace, change.new.worker))

    machines.subscribe(on_machine)
    return Unit(NAME, caches=[machines], controllers=[controller])


class _Updates:
    def __init__(self, actuator: Actuator, client: Client) -> None:
        self._actuator = actuator
        self._client = client
        self._predicate = Predicate(actuator.type)

    async def reconcile(self, key: Key) -> Outcome:
        """Request a run of one Worker, unless one is under way."""
        kind = self._actuator.gvk()
        try:
            worker = await self._client.get(kind, key)
            seen = snapshot(worker)
            if not self._predicate.is_responsible(seen) or seen.is_deleting or not _waits(worker):
                return DONE
            if seen.request.operation or map_at(worker, "status", "lastOperation").get("state") in (
                "Processing",
                "Pending",
            ):
                return Again(_SOON)
            annotations = {marks.OPERATION: marks.OPERATION_RECONCILE}
            await self._client.patch(kind, key, {"metadata": {"annotations": annotations}})
        except NotFound:
            return DONE
        return DONE


def _waits(worker: JsonObject) -> bool:
    """Return whether users start updates of any pool."""
    pools = maps_at(worker, "spec", "pools")
    return any(pool.get("updateStrategy") == MANUAL_IN_PLACE for pool in pools)


def _read(machine: JsonObject) -> Updated:
    state = next(
        (
            str(each.get("reason") or "")
            for each in maps_at(machine, "status", "conditions")
            if each.get("type") == UPDATE
        ),
        "",
    )
    return Updated(labels_of(machine).get(WORKER_LABEL, ""), state)
