"""The external address of the ingress gateway (spec 20 §15.3)."""

from typing import Final

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.garden.components.component import Clusters
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.components.service_mesh import gateway

SERVICE_KEY: Final = Key(INGRESS_NAMESPACE, gateway.NAME)


async def wait_for_address(clusters: Clusters, limit: float) -> str:
    """Return the address of the ingress gateway's load balancer, once it has one.

    Args:
        limit: In seconds.

    Raises:
        NotReady: The load balancer has no address.
        KubeError: The Service cannot be read.
    """
    return address_of(await clusters.wait(SERVICE, SERVICE_KEY, _problem, limit))


def address_of(service: JsonObject | None) -> str:
    """Return the first address of a load balancer, an IP or a host name; empty if it has none."""
    for entry in maps_at(service or {}, "status", "loadBalancer", "ingress"):
        return str(entry.get("ip") or entry.get("hostname") or "")
    return ""


def _problem(service: JsonObject | None) -> str | None:
    if service is None:
        return "it does not exist"
    return None if address_of(service) else "its load balancer has no address"
