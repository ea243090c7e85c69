"""The addresses of an extension's webhooks: the options `--webhook-config-*`."""

from dataclasses import dataclass
from typing import Final, Literal

from pergola.admission.configurations import Endpoint, by_service, by_url, hosts_of
from pergola.admission.owner import Owner
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import Key
from pergola.extensions.webhooks.declare import WebhookError, configuration_name

Mode = Literal["service", "url", "url-service"]
MODES: Final[tuple[Mode, ...]] = ("service", "url", "url-service")
PORT: Final = 10250
SERVICE_PORT: Final = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """The address of the webhook server.

    Attributes:
        mode: a Service of the calling cluster, a `url`, or the Service's name as a URL, for callers
            outside the cluster that can resolve it.
        url: host and port of the server, such as `webhooks.example.org:443`.
        namespace: of the Service, and of the Secret with the certificates.
        owner_namespace: the namespace whose deletion deletes the webhook configurations; empty for
            none.
        owner_cluster_role: the ClusterRole whose deletion deletes them; empty for none.
        host: the address to listen on; empty for all.
        port: the port to listen on.
        cert_dir: receives the certificate; a temporary directory if empty.
        client_ca: a PEM file; only clients with a certificate of these authorities may connect.
        disabled: webhooks to disable, by the first parts of their names, such as `network`.

    Raises:
        WebhookError: An option is missing or has an invalid value.
    """

    mode: Mode = "service"
    url: str = ""
    namespace: str = ""
    owner_namespace: str = ""
    owner_cluster_role: str = ""
    host: str = ""
    port: int = PORT
    service_port: int = SERVICE_PORT
    cert_dir: str = ""
    client_ca: str = ""
    disabled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise WebhookError(
                f"--webhook-config-mode is {self.mode!r}, but must be one of {', '.join(MODES)}"
            )
        if self.mode == "url" and not self.url:
            raise WebhookError(
                "--webhook-config-mode=url needs --webhook-config-url: the host and port of the "
                "webhook server"
            )
        if not self.namespace:
            raise WebhookError(
                "--webhook-config-namespace is not set: the namespace of the webhooks' Service and "
                "of the Secret with their certificates"
            )

        if self.owner_namespace and self.owner_cluster_role:
            raise WebhookError(
                "--webhook-config-owner-namespace and webhookConfigOwnerClusterRole are both set: "
                "the webhook configurations have one owner"
            )

    def owner(self) -> Owner | None:
        """Return the object whose deletion deletes the webhook configurations."""
        if self.owner_namespace:
            setting = "--webhook-config-owner-namespace"
            return Owner(NAMESPACE_KIND, self.owner_namespace, setting)
        return Owner.cluster_role(self.owner_cluster_role, "webhookConfigOwnerClusterRole")

    def endpoint(self, component: str) -> Endpoint:
        """Return the endpoint for the API server of the extension's own cluster."""
        if self.mode == "service":
            return by_service(configuration_name(component), self.namespace, self.service_port)
        return self.shoot_endpoint(component)

    def shoot_endpoint(self, component: str) -> Endpoint:
        """Return the endpoint for API servers of Shoots: a URL, since they have no such Service."""
        if self.mode == "url":
            return by_url(_with_scheme(self.url))
        name = configuration_name(component)
        return by_url(f"https://{name}.{self.namespace}:{self.service_port}")

    def hosts(self, component: str) -> tuple[str, ...]:
        """Return the host names of the certificate."""
        service = Key(self.namespace, configuration_name(component))
        return hosts_of(service, _with_scheme(self.url) if self.url else "")


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"https://{url}"
