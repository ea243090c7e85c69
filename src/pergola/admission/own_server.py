"""A webhook server for a process of one's own: it issues its certificate and registers itself."""

from collections.abc import Iterable
from typing import Final

from pergola.admission.configurations import configurations, hosts_of, reached_at
from pergola.admission.serving import Listening, OwnIdentity, WebhookServer
from pergola.admission.webhook import Webhook, endpoints
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.pki import Plan
from pergola.runtime.metrics import Metrics

PORT: Final = 9443
_LONGEST_COMMON_NAME: Final = 64


def webhook_server(
    client: Client,
    webhooks: Iterable[Webhook],
    metrics: Metrics,
    *,
    service: Key,
    url: str = "",
    host: str = "",
    port: int = PORT,
) -> WebhookServer:
    """Return a server for webhooks, which `Application.serve` runs.

    It keeps its certificates in the Secret `NAME-certificates` beside the Service, renews them, and
    writes webhook configurations with the name of the Service. With leader election, every replica
    serves, and the leader renews and registers.

    Args:
        service: through which the API server reaches this process, on port 443.
        url: reaches it without a Service, such as `https://127.0.0.1`; without a port, the one
            that is served.
        host: the address to listen on; empty for all.
        port: the port to listen on; 0 for any free one.

    Raises:
        ValueError: two webhooks share a path.
    """
    found = list(webhooks)
    registrations = [each.registration for each in found if each.is_registered]

    def render(bundle: bytes) -> list[JsonObject]:
        endpoint = reached_at(service, url, server.port)
        return configurations(service.name, {}, registrations, endpoint, bundle)

    identity = OwnIdentity(
        client=client,
        secret=Key(service.namespace, f"{service.name}-certificates"),
        plan=Plan(service.name[:_LONGEST_COMMON_NAME], hosts_of(service, url)),
        name=service.name,
        render=render,
    )
    listening = Listening(host=host, port=port)
    server = WebhookServer(endpoints(found, metrics), listening, metrics, identity)
    return server
