"""Which Services an event is about: only those whose policies it can change (spec 11 §4.10)."""

from collections.abc import Iterable
from dataclasses import dataclass

from pergola.api.objects import Key
from pergola.controllers.network_policy.apply import Writer
from pergola.controllers.network_policy.callers import ANYWHERE
from pergola.controllers.network_policy.intents import Labels
from pergola.controllers.network_policy.seen import (
    Destination,
    SeenNamespace,
    SeenPolicy,
    SeenVirtualService,
)
from pergola.controllers.network_policy.service import ServiceView
from pergola.controllers.network_policy.watches import Watches
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.queue import Queue


@dataclass(frozen=True, slots=True)
class Wakes:
    """Puts Services into the queue."""

    watches: Watches
    writer: Writer
    queue: Queue[Key]

    def subscribe(self) -> None:
        """Listens from now on."""
        watches = self.watches
        watches.services.subscribe(self.on_service)
        watches.namespaces.subscribe(self.on_namespace)
        watches.policies.subscribe(self.on_policy)
        watches.istio.virtual_services.subscribe(self.on_virtual_service)
        watches.istio.gateways.subscribe(self.on_gateway)
        watches.istio.pods.subscribe(self.on_gateway_pods)
        if watches.ingresses is not None:
            watches.ingresses.subscribe(self.on_ingress)
        if watches.callers is not None:
            watches.callers.pods.subscribe(self.on_pod)

    def on_service(self, change: Change[ServiceView]) -> None:
        """A Service, if something of it that matters changed."""
        if change.old != change.new:
            self.queue.add(change.key)

    def on_policy(self, change: Change[SeenPolicy]) -> None:
        """The Services that a policy belongs or belonged to, unless it is as it was just written.

        When a policy is gone, also those that wanted one of its name.
        """
        old, new = change.old, change.new
        if new is None:
            self._wake(self.writer.gone(change.key))
        elif self.writer.is_as_written(change.key, new):
            return
        if old is None or new is None or (old.owner, old.digest) != (new.owner, new.digest):
            self._wake(seen.owner for seen in (old, new) if seen is not None and seen.owner)

    def on_namespace(self, change: Change[SeenNamespace]) -> None:
        """The Services inside it, and those elsewhere whose callers may be there, or no more."""
        old, new, name = change.old, change.new, change.key.name
        if old == new:
            return
        self._wake(self.watches.peers.namespace_changed(change))
        was_open, is_open = _is_open(old), _is_open(new)
        if was_open != is_open or self.watches.handles(old) != self.watches.handles(new):
            self._wake(self.watches.services_by_namespace.keys(name))
        controller = self.watches.ingress_controller
        exposed = self.watches.ingresses_by_service
        if controller and exposed and name == controller.namespace and was_open != is_open:
            self._wake(exposed.values())

    def on_pod(self, change: Change[frozenset[str]]) -> None:
        """The Services that the first pod of a namespace with a label may call, or the last."""
        callers, namespace = self.watches.callers, change.key.namespace
        if callers is None or change.old == change.new:
            return
        new: frozenset[str] = change.new or frozenset()
        for label in new ^ (change.old or frozenset()):
            if len(callers.by_label.keys((namespace, label))) == (1 if label in new else 0):
                self._wake(callers.services.keys((namespace, label)))
                for service in callers.services.keys((ANYWHERE, label)):
                    if self.watches.peers.chooses(service, namespace):
                        self.queue.add(service)

    def on_ingress(self, change: Change[frozenset[Destination]]) -> None:
        """The Services that an Ingress began or ceased to name."""
        nothing: frozenset[Destination] = frozenset()
        moved = (change.old or nothing) ^ (change.new or nothing)
        self._wake(destination.service for destination in moved)

    def on_virtual_service(self, change: Change[SeenVirtualService]) -> None:
        """The Services to which traffic goes or went."""
        if change.old != change.new:
            for seen in (change.old, change.new):
                if seen is not None:
                    self._wake(destination.service for destination in seen.destinations)

    def on_gateway(self, change: Change[Labels]) -> None:
        """The Services to which traffic goes from a Gateway."""
        if change.old != change.new:
            self._wake(self.watches.istio.services_behind(change.key))

    def on_gateway_pods(self, labels: Labels) -> None:
        """The Services to which traffic goes from the Gateways with pods of these labels."""
        for gateway in self.watches.istio.by_labels.keys(labels):
            self._wake(self.watches.istio.services_behind(gateway))

    def _wake(self, services: Iterable[Key]) -> None:
        for service in services:
            self.queue.add(service)


def _is_open(namespace: SeenNamespace | None) -> bool:
    return namespace is not None and not namespace.terminating
