"""The namespaces from which Istio gateways send traffic to Services (spec 11 §4.8)."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from pergola.api.kinds import GATEWAY, POD, VIRTUAL_SERVICE
from pergola.api.objects import Key
from pergola.controllers.network_policy.intents import GatewayBackend, Labels
from pergola.controllers.network_policy.seen import (
    Destination,
    SeenVirtualService,
    keep_gateway,
    keep_presence,
    keep_virtual_service,
)
from pergola.kube.client import Client
from pergola.kube.selectors import SelectorError, format_selector
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("networkpolicy")


class Istio:
    """VirtualServices, their Gateways and the Gateways' pods; empty if Istio is not installed."""

    def __init__(self, client: Client, namespaces: Collection[str]) -> None:
        self.virtual_services = Caches(
            client, VIRTUAL_SERVICE, keep_virtual_service, namespaces=namespaces
        )
        self.gateways = Caches(client, GATEWAY, keep_gateway, namespaces=namespaces)
        self.by_service: Index[SeenVirtualService, Key] = Index(
            self.virtual_services, lambda _, seen: [d.service for d in seen.destinations]
        )
        self.by_gateway: Index[SeenVirtualService, Key] = Index(
            self.virtual_services, lambda _, seen: seen.gateways
        )
        self.by_labels: Index[Labels, Labels] = Index(
            self.gateways, lambda _, labels: [labels] if labels else []
        )
        self.pods = GatewayPods(client, self.by_labels, namespaces=namespaces)
        self.gateways.subscribe(self.pods.gateway_changed)

    def services_behind(self, gateway: Key) -> Iterator[Key]:
        """Yield the Services that a Gateway sends traffic to."""
        for key in self.by_gateway.keys(gateway):
            seen = self.virtual_services.get(key)
            if seen is not None:
                yield from (destination.service for destination in seen.destinations)

    async def backends(self, service: Key) -> list[GatewayBackend]:
        """Return the ports of a Service that receive traffic, for each source namespace.

        Waits until the namespaces of the Gateways' pods are known.
        """
        while waiting := self.pods.unknown(labels for _, _, labels in self._routes(service)):
            await waiting[0].wait()
        found = (
            GatewayBackend(destination.port, f"VirtualService {name}", namespace, labels)
            for name, destination, labels in self._routes(service)
            for namespace in self.pods.namespaces_of(labels)
        )
        return sorted(set(found), key=str)

    def _routes(self, service: Key) -> Iterator[tuple[str, Destination, Labels]]:
        """Yield the routes to a Service from existing Gateways that select pods."""
        for key in self.by_service.keys(service):
            seen = self.virtual_services.get(key)
            if seen is None:
                continue
            ours = [one for one in seen.destinations if one.service == service]
            for gateway in seen.gateways:
                if labels := self.gateways.get(gateway):
                    yield from ((key.name, destination, labels) for destination in ours)


class _Followed(NamedTuple):
    """The pods with some labels; `decided` is set once they are known, or no longer needed."""

    pods: Caches[bool]
    decided: asyncio.Event


class GatewayPods:
    """The pods of all Gateways; `run` keeps them up to date.

    Gateways share few sets of labels, and few pods have them, so each set gets its own watch:
    watching all pods would be the most expensive part of this controller.

    Args:
        gateways: the Gateways by the labels of their pods.
    """

    def __init__(
        self,
        client: Client,
        gateways: Index[Labels, Labels],
        *,
        namespaces: Collection[str],
    ) -> None:
        self._client = client
        self._gateways = gateways
        self._namespaces = namespaces
        self._subscribers: list[Callable[[Labels], None]] = []
        self._followed: dict[Labels, _Followed] = {}
        self._changed = asyncio.Event()

    def subscribe(self, subscriber: Callable[[Labels], None]) -> None:
        """Call `subscriber` with the labels of each pod that appears or disappears."""
        self._subscribers.append(subscriber)

    def gateway_changed(self, change: Change[Labels]) -> None:
        """Watch the pods of a Gateway, until the last Gateway with these labels is gone."""
        if change.new and change.new not in self._followed:
            self._follow(change.new)
        if change.old and change.old not in self._gateways:
            self._leave(change.old)

    def namespaces_of(self, labels: Labels) -> list[str]:
        """Return the namespaces with pods of these labels, sorted."""
        followed = self._followed.get(labels)
        return sorted({key.namespace for key, _ in followed.pods.items()}) if followed else []

    def unknown(self, several: Iterable[Labels]) -> list[asyncio.Event]:
        """Return the events to wait for until all pods with these labels are known."""
        found = (self._followed.get(labels) for labels in several)
        return [one.decided for one in found if one is not None and not one.decided.is_set()]

    async def run(self) -> None:
        """Keep the pods up to date until cancelled."""
        running: dict[_Followed, asyncio.Task[None]] = {}
        async with TaskGroup() as group:
            while True:
                self._changed.clear()
                desired = set(self._followed.values())
                for followed in desired - running.keys():
                    running[followed] = group.create_task(_run(followed))
                for followed in running.keys() - desired:
                    running.pop(followed).cancel()
                await self._changed.wait()

    def _follow(self, labels: Labels) -> None:
        try:
            selector = format_selector({"matchLabels": dict(labels)})
        except SelectorError as error:
            log.info("gateway not understood", labels=dict(labels), error=str(error))
            return
        pods = Caches(
            self._client,
            POD,
            keep_presence,
            namespaces=self._namespaces,
            labels=selector,
            metadata_only=True,
        )
        pods.subscribe(lambda change: self._pod_changed(labels, change))
        self._followed[labels] = _Followed(pods, asyncio.Event())
        self._changed.set()

    def _leave(self, labels: Labels) -> None:
        followed = self._followed.pop(labels, None)
        if followed is not None:
            followed.decided.set()
            self._changed.set()

    def _pod_changed(self, labels: Labels, change: Change[bool]) -> None:
        if change.old != change.new:
            for subscriber in self._subscribers:
                subscriber(labels)


async def _run(followed: _Followed) -> None:
    async with TaskGroup() as group:
        for cache in followed.pods:
            group.create_task(cache.run())
        for cache in followed.pods:
            await cache.synced()
        followed.decided.set()
