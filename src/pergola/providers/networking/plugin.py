"""The base class of network plugins: their contract as an actuator (spec 40 §5.3, §6.3, §9)."""

from collections.abc import Sequence
from typing import Generic

from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject
from pergola.extensions.actuator import Context, Status
from pergola.extensions.garden import Garden
from pergola.providers.networking import rollout
from pergola.providers.networking.admission import admission_webhooks
from pergola.providers.networking.contract import PluginContract
from pergola.providers.networking.plan import C, Plan, Rendered

__all__ = ["NetworkPlugin", "Plan", "Rendered"]


class NetworkPlugin(PluginContract[C], Generic[C]):
    """An actuator for Networks of one type: its author checks and renders, it does the rest."""

    def admission_webhooks(self, garden: Garden) -> Sequence[Webhook]:
        """Return the webhooks that apply the defaults, and refuse by the checks (§7.3)."""
        return admission_webhooks(self, self.shoot_defaults())

    async def reconcile(self, context: Context, obj: JsonObject) -> Status:
        """Roll the network out."""
        return await rollout.reconcile(self, context, obj)

    async def delete(self, context: Context, obj: JsonObject) -> None:
        """Delete everything; return when the Shoot has none of it left."""
        await rollout.delete(self, context)

    async def force_delete(self, context: Context, obj: JsonObject) -> None:
        """Request the deletion of everything; log and leave what cannot be deleted."""
        await rollout.force_delete(self, context)

    async def migrate(self, context: Context, obj: JsonObject) -> None:
        """Leave the seed; the Shoot keeps its network, and the Network its `status.state`."""
        await rollout.migrate(self, context)
