"""Conventions that the objects of all components share (spec 20 §13)."""

from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue
from pergola.garden.landscape import Landscape
from pergola.kube.quantities import parse_quantity

GARDEN_SCRAPES: Final = (
    "networking.resources.gardener.cloud/from-all-garden-scrape-targets-allowed-ports"
)
SEED_SCRAPES: Final = (
    "networking.resources.gardener.cloud/from-all-seed-scrape-targets-allowed-ports"
)
WEBHOOK_TARGETS: Final = (
    "networking.resources.gardener.cloud/from-all-webhook-targets-allowed-ports"
)
FROM_WORLD: Final = "networking.resources.gardener.cloud/from-world-to-ports"
_NAMESPACES: Final = "networking.resources.gardener.cloud/namespace-selectors"

USER: Final = 65532
NON_ROOT: Final[JsonObject] = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
}
"""The security context of pods that run as this user and own their volumes."""

_ALLOWED: Final = "allowed"
TO_DNS: Final = {"networking.gardener.cloud/to-dns": _ALLOWED}
TO_RUNTIME_API_SERVER: Final = {"networking.gardener.cloud/to-runtime-apiserver": _ALLOWED}
TO_PUBLIC_NETWORKS: Final = {"networking.gardener.cloud/to-public-networks": _ALLOWED}
TO_PRIVATE_NETWORKS: Final = {"networking.gardener.cloud/to-private-networks": _ALLOWED}
TLS_TERMINATION: Final = "IstioTLSTermination"
"""A feature gate of the operator."""


def to_service(name: str, port: int) -> dict[str, str]:
    """Return the label that lets pods connect to a port of a Service in their namespace."""
    return {f"networking.resources.gardener.cloud/to-{name}-tcp-{port}": _ALLOWED}


def open_ports(annotation: str, *ports: int) -> dict[str, str]:
    """Return the annotation that opens TCP ports of a Service's pods to some clients.

    Args:
        annotation: The annotation for these clients, such as `GARDEN_SCRAPES`.
    """
    opened: list[JsonObject] = [{"protocol": "TCP", "port": port} for port in ports]
    return {annotation: orjson.dumps(opened).decode()}


def open_to_namespaces(*selectors: JsonObject) -> dict[str, str]:
    """Return the annotation that also lets pods of other namespaces connect to a Service.

    Args:
        selectors: Label selectors of these namespaces.
    """
    return {_NAMESPACES: orjson.dumps(selectors).decode()}


def nearest_first(landscape: Landscape) -> JsonObject:
    """Return the field of a Service's spec that makes clients prefer pods in their own zone."""
    routing = landscape.runtime.settings.topology_aware_routing
    is_on = routing is not None and routing.enabled
    return {"trafficDistribution": landscape.traffic_distribution} if is_on else {}


def terminates_tls(landscape: Landscape) -> bool:
    """Return whether the ingress gateway terminates TLS for the API server."""
    return landscape.feature_gates.get(TLS_TERMINATION, False)


def raised(desired: JsonObject, least: JsonObject) -> JsonObject:
    """Return quantities by resource, the higher one where both have one."""
    lower = (name for name in desired.keys() & least.keys() if _is_less(least[name], desired[name]))
    return {**desired, **least, **{name: desired[name] for name in lower}}


def _is_less(one: JsonValue, other: JsonValue) -> bool:
    return parse_quantity(str(one)) < parse_quantity(str(other))


def volume_size(landscape: Landscape, size: str) -> str:
    """Return the size of a volume, raised to `spec.runtimeCluster.volume.minimumSize`."""
    least = landscape.runtime.volume.minimum_size
    if least is None or parse_quantity(least) <= parse_quantity(size):
        return size
    return str(least)
