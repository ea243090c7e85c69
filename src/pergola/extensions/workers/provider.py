"""The base class of a provider's Workers: its author renders, it does the rest (spec 31 §1)."""

from collections.abc import Sequence
from typing import Final, Generic

from pergola.api.objects import JsonObject
from pergola.extensions.actuator import Context, Status
from pergola.extensions.health_checks.checks import HealthCheck
from pergola.extensions.workers import reconcile, restoring
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.health import every_node_ready
from pergola.extensions.workers.pool import C
from pergola.extensions.workers.removal import remove
from pergola.extensions.workers.updates import updates_controller
from pergola.kube.client import Client
from pergola.manifests import rule
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

_WRITE: Final = ("create", "delete", "get", "list", "patch", "watch")


class WorkerProvider(WorkerContract[C], Generic[C]):
    """An actuator for Workers of one type.

    It writes the objects of machine-controller-manager, waits until machines run or are gone, and
    knows hibernation, updates in place, migration and deletion.
    """

    rules = (
        rule(
            "machine.sapcloud.io",
            ["machineclasses", "machinedeployments", "machines", "machinesets"],
            _WRITE,
        ),
        rule("", ["secrets"], _WRITE),
        rule("", ["pods"], ["list", "delete"]),  # of a machine-controller-manager that is stuck
        rule("apps", ["deployments"], ["get", "patch"]),  # it stops while a Shoot sleeps
    )

    async def reconcile(self, context: Context, obj: JsonObject) -> Status:
        """Create the machines, or change what differs; return when they run."""
        return await reconcile.reconcile(self, context, obj)

    async def delete(self, context: Context, obj: JsonObject) -> None:
        """Delete all machines; return when nothing is left of them."""
        await remove(self, context, obj)

    async def force_delete(self, context: Context, obj: JsonObject) -> None:
        """Leave everything: gardenlet deletes the objects, and the machines stay in the cloud."""

    async def migrate(self, context: Context, obj: JsonObject) -> None:
        """Leave everything: gardenlet takes the state of the machines with it."""

    async def restore(self, context: Context, obj: JsonObject) -> Status:
        """Continue with the machines that ran before the Shoot changed its seed."""
        return await restoring.restore(self, context, obj)

    def health_checks(self) -> Sequence[HealthCheck]:
        """Return the check behind the condition `EveryNodeReady`."""
        return [every_node_ready(self.codes_of)]

    def companions(self, client: Client, metrics: Metrics) -> Sequence[Unit]:
        """Return the controller that follows updates which users start."""
        return [updates_controller(self, client, metrics=metrics)]
