"""The controller of collectors."""

from contextlib import suppress
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.collectors.objects import (
    deployment_of,
    replicas_of,
    selector_of,
    service_of,
)
from pergola.sandbox.late_kinds import whole

COLLECTOR: Final = GroupVersionKind("opentelemetry.io", "v1beta1", "OpenTelemetryCollector")

_MANAGER: Final = "opentelemetry-operator"


class Collectors:
    """A reconciler of OpenTelemetryCollectors."""

    def __init__(self, client: Client, cache: Cache[JsonObject]) -> None:
        self._client = client
        self._cache = cache

    async def reconcile(self, key: Key) -> Outcome:
        """Apply the objects of a collector, and report its scale; they go with their owner."""
        collector = self._cache.get(key)
        if collector is None or map_at(collector, "spec").get("mode") != "deployment":
            return DONE
        for obj in (deployment_of(collector), service_of(collector)):
            await self._client.apply(obj, manager=_MANAGER, force=True)
        scale = {
            "selector": format_selector({"matchLabels": selector_of(collector)}),
            "replicas": replicas_of(collector),
        }
        if map_at(collector, "status", "scale") != scale:
            with suppress(NotFound):  # it was deleted in between
                status: JsonObject = {"status": {"scale": scale}}
                await self._client.patch(COLLECTOR, key, status, subresource="status")
        return DONE


def collectors_unit(client: Client) -> Unit:
    """Return the unit that runs collectors in all namespaces."""
    collectors = Cache(client, COLLECTOR, whole)
    return Controller(
        "collectors",
        Collectors(client, collectors).reconcile,
        watches=[Watch(collectors)],
        metrics=Metrics(),
    )
