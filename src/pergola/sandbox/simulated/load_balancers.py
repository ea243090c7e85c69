"""Addresses for Services of type LoadBalancer; nothing listens there."""

from typing import Final

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import whole

# For documentation (RFC 5737): no packet reaches anyone.
_ADDRESS: Final = "192.0.2.1"


def load_balancers_unit(client: Client) -> Unit:
    """Return the unit that reports an address for all load balancers of a cluster."""
    services = Cache(client, SERVICE, whole)

    async def reconcile(key: Key) -> Outcome:
        service = services.get(key)
        if service is not None and _waits(service):
            status = {"loadBalancer": {"ingress": [{"ip": _ADDRESS}]}}
            await client.patch(SERVICE, key, {"status": status}, subresource="status")
        return DONE

    return Controller("load-balancers", reconcile, watches=[Watch(services)], metrics=Metrics())


def _waits(service: JsonObject) -> bool:
    is_balanced = map_at(service, "spec").get("type") == "LoadBalancer"
    return is_balanced and not maps_at(service, "status", "loadBalancer", "ingress")
