"""The Services of the ingress gateway: one for clients outside, one for pods of the cluster."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.conventions import (
    FROM_WORLD,
    SEED_SCRAPES,
    open_ports,
    open_to_namespaces,
)
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.components.service_mesh.gateway import (
    LISTENER,
    METRICS_PORT,
    NAME,
    PODS,
    SCRAPED,
    versioned,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import service, service_port

INTERNAL: Final = f"{NAME}-internal"

_ROLE: Final = "gardener.cloud/role"
_SHOOTS_LISTENER: Final = 8443
"""The port for VPN tunnels, which a Seed in the same cluster adds."""
_ALIAS: Final = {
    "networking.resources.gardener.cloud/pod-label-selector-namespace-alias": "all-istio-ingresses"
}
_BOTH: Final = 2


def load_balancer(landscape: Landscape) -> JsonObject:
    """Return the Service whose address the garden's DNS records point to."""
    settings = landscape.runtime.settings.load_balancer_services
    policy: JsonObject = {}
    if settings.external_traffic_policy:
        policy["externalTrafficPolicy"] = settings.external_traffic_policy
    return service(
        NAME,
        INGRESS_NAMESPACE,
        PODS,
        service_port("tcp", 443, LISTENER),
        labels={**versioned(landscape), **SCRAPED},
        annotations={
            **open_ports(FROM_WORLD, _SHOOTS_LISTENER, LISTENER),
            **open_ports(SEED_SCRAPES, METRICS_PORT),
            **_neighbours(),
            **_ALIAS,
            **settings.annotations,
        },
        type="LoadBalancer",
        **_families(landscape),
        **policy,
    )


def internal(landscape: Landscape) -> JsonObject:
    """Return the Service for pods in the cluster, which keeps requests in their zone."""
    return service(
        INTERNAL,
        INGRESS_NAMESPACE,
        PODS,
        service_port("tcp", 443, LISTENER),
        labels=versioned(landscape),
        annotations={
            **open_ports(FROM_WORLD, LISTENER),
            **_neighbours(),
            **landscape.runtime.settings.load_balancer_services.annotations,
        },
        trafficDistribution=landscape.traffic_distribution,
        **_families(landscape),
    )


def _neighbours() -> dict[str, str]:
    return open_to_namespaces(
        {"matchLabels": {_ROLE: "extension"}},
        {"matchLabels": {_ROLE: "shoot"}},
        {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
    )


def _families(landscape: Landscape) -> JsonObject:
    families = landscape.runtime.networking.ip_families
    if len(families) < _BOTH:
        return {}
    return {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": list(families)}
