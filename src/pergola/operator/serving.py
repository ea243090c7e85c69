"""The server of the operator's webhooks, and their registration (spec 21 §6).

Every replica serves them; the leader renews their certificate and keeps them registered.
"""

from pathlib import Path
from typing import Final

from pergola.admission.configurations import configurations, hosts_of, reached_at
from pergola.admission.owner import Owner
from pergola.admission.serving import Listening, OwnIdentity, WebhookServer
from pergola.admission.webhook import endpoints, registrations
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import OperatorConfiguration
from pergola.kube.client import Client
from pergola.operator.webhooks.catalog import CONFIGURATION_NAME, Dependencies, webhooks
from pergola.operator.webhooks.namespace import GARDEN_NAMESPACE
from pergola.pki import Plan
from pergola.runtime.metrics import Metrics

SERVICE: Final = Key(GARDEN_NAMESPACE, "gardener-operator")
IDENTITY: Final = Key(GARDEN_NAMESPACE, "gardener-operator-webhook-server")
"""The Secret with the certificates of the server and of its authority."""


class WebhookServing(WebhookServer):
    """The webhooks of one process.

    Args:
        client: The client of the runtime cluster, whose API server calls the webhooks.
        url: The URL of the server for the API server, such as `https://10.0.0.1`; empty for the
            Service.
    """

    def __init__(
        self,
        config: OperatorConfiguration,
        client: Client,
        dependencies: Dependencies,
        metrics: Metrics,
        *,
        url: str = "",
    ) -> None:
        found = webhooks(dependencies)
        self._registrations = registrations(found)
        self._url = url
        server = config.server.webhooks
        identity = OwnIdentity(
            client=client,
            secret=IDENTITY,
            plan=Plan(SERVICE.name, hosts_of(SERVICE, url)),
            name=CONFIGURATION_NAME,
            render=self.configurations,
            owner=Owner.cluster_role(server.owner_cluster_role, "server.webhooks.ownerClusterRole"),
            clock=dependencies.clock,
        )
        client_ca = Path(server.tls.client_ca_file) if server.tls.client_ca_file else None
        listening = Listening(host=server.bind_address, port=server.port, client_ca=client_ca)
        super().__init__(endpoints(found, metrics), listening, metrics, identity)

    def configurations(self, bundle: bytes) -> list[JsonObject]:
        """Return the webhook configurations.

        Args:
            bundle: The certificates that the API server must trust, PEM.
        """
        endpoint = reached_at(SERVICE, self._url, self.port)
        return configurations(CONFIGURATION_NAME, {}, self._registrations, endpoint, bundle)
