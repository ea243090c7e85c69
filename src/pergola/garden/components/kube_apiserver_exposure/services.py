"""The Services of the virtual cluster's API server.

If the gateway terminates TLS, three Services select the same pods, because Istio configures
connections per Service: the gateway presents its own certificate on behalf of clients that have
one, and speaks HTTP/1.1 on connections that will be upgraded.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Clusters, Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    open_ports,
    open_to_namespaces,
    terminates_tls,
)
from pergola.garden.components.istio import EXPORTED
from pergola.garden.components.kube_apiserver_exposure.address import wait_for_address
from pergola.garden.components.removal import removable
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import service, service_port

LABELS: Final = {"app": "kubernetes", "role": "apiserver"}
MUTUAL: Final = f"{API_SERVER}-mtls"
UPGRADED: Final = f"{API_SERVER}-connection-upgrade"
PORT: Final = 443

_LIMIT: Final = 600.0
_ACCESS: Final = {"matchLabels": {"networking.gardener.cloud/access-target-apiserver": "allowed"}}


def render(landscape: Landscape) -> Rendered:
    """Return the Service, and the extra ones for a gateway that terminates TLS."""
    if not terminates_tls(landscape):
        return Rendered(direct=(_service(landscape, API_SERVER),))
    names = (API_SERVER, MUTUAL, UPGRADED)
    return Rendered(direct=tuple(_service(landscape, name) for name in names))


def _service(landscape: Landscape, name: str) -> JsonObject:
    scraped = {"metrics-scrape-target": "true"} if name == API_SERVER else {}
    return service(
        name,
        NAMESPACE,
        LABELS,
        service_port("kube-apiserver", PORT),
        labels={**LABELS, **scraped},
        annotations={
            **EXPORTED,
            **open_ports(GARDEN_SCRAPES, PORT),
            **open_to_namespaces(_ACCESS),
        },
        ipFamilyPolicy="PreferDualStack",
        **_routing(landscape),
    )


def _routing(landscape: Landscape) -> JsonObject:
    """Return the field that keeps traffic in its zone, unless the gateway balances requests."""
    routing = landscape.runtime.settings.topology_aware_routing
    if routing is None or not routing.enabled or terminates_tls(landscape):
        return {}
    return {"trafficDistribution": landscape.traffic_distribution}


async def wait_for_gateway(landscape: Landscape, clusters: Clusters) -> None:
    """Wait until the ingress gateway has an address; raises as `wait_for_address` does."""
    await wait_for_address(clusters, _LIMIT)


API_SERVER_SERVICE: Final = Component(
    name="kube-apiserver-service",
    deploy="Deploying and waiting for kube-apiserver service in the runtime cluster",
    after=task_names.SYNC_POINT,
    render=render,
    finish=wait_for_gateway,
    limit=_LIMIT,
    removable=removable(*(f"Service {name}" for name in (API_SERVER, MUTUAL, UPGRADED))),
)
