"""The base class of a provider's ControlPlanes: its author renders, it does the rest (§6)."""

from collections.abc import Sequence
from typing import Generic

from pergola.api.objects import JsonObject
from pergola.extensions.actuator import Context
from pergola.extensions.control_planes import rollout
from pergola.extensions.control_planes.contract import ControlPlaneContract
from pergola.extensions.control_planes.hibernation import hibernation_controller
from pergola.extensions.control_planes.plan import C
from pergola.kube.client import Client
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics


class ControlPlaneProvider(ControlPlaneContract[C], Generic[C]):
    """An actuator for ControlPlanes of one type.

    It generates credentials, requests tokens, and ships the rendered objects as ManagedResources;
    it knows hibernation, rotation, migration and deletion.
    """

    rules = rollout.RULES

    async def reconcile(self, context: Context, obj: JsonObject) -> None:
        """Install the control plane, or update what differs."""
        await rollout.reconcile(self, context, obj)

    async def delete(self, context: Context, obj: JsonObject) -> None:
        """Delete everything; return when the Shoot has none of it left."""
        await rollout.delete(self, context, obj)

    async def force_delete(self, context: Context, obj: JsonObject) -> None:
        """Request the deletion of everything; log and leave what cannot be deleted."""
        await rollout.force_delete(self, context)

    async def migrate(self, context: Context, obj: JsonObject) -> None:
        """Leave the seed; the Shoot keeps its system components."""
        await rollout.migrate(self, context)

    def companions(self, client: Client, metrics: Metrics) -> Sequence[Unit]:
        """Return the controller that stops controllers of hibernated Shoots."""
        return [hibernation_controller(self, client, metrics=metrics)]
