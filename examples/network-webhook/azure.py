"""A cloud provider that adapts Networks to its cloud: Azure drops IP-in-IP."""

from collections.abc import Sequence

from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject
from pergola.extensions import Actuator, Context, Seed
from pergola.extensions.webhooks.clouds import AZURE_CALICO, CALICO
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.extensions.webhooks.provider_configs import config_mutator


class Azure(Actuator):
    """A cloud provider, without the actual infrastructure."""

    kind = "Infrastructure"
    type = "azure"
    name = "provider-azure"

    async def reconcile(self, context: Context, obj: JsonObject) -> None:
        """Create nothing."""

    async def delete(self, context: Context, obj: JsonObject) -> None:
        """Delete nothing."""

    async def migrate(self, context: Context, obj: JsonObject) -> None:
        """Keep nothing."""

    def webhooks(self, seed: Seed) -> Sequence[Webhook]:
        """Return the webhook with rules for calico's config; other Networks stay as they are."""
        return [
            network_mutator(self.name, "azure", {"calico": config_mutator(CALICO, AZURE_CALICO)})
        ]
