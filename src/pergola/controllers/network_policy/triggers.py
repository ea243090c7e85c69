"""Triggers of Services: the events that can change their policies (spec 11 §4.10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pergola.api.objects import Key
from pergola.controllers.network_policy.apply import Writer
from pergola.controllers.network_policy.callers import ANYWHERE, Place
from pergola.controllers.network_policy.intents import Labels
from pergola.controllers.network_policy.seen import (
    Destination,
    SeenNamespace,
    SeenPolicy,
    SeenVirtualService,
)
from pergola.controllers.network_policy.watches import Watches
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.watches import Watch, changed


@dataclass(frozen=True, slots=True)
class Triggers:
    """A mapping of events to the Services that they trigger."""

    watches: Watches
    writer: Writer

    def all(self) -> Iterator[Watch[Any, Key]]:
        """Yield all triggers of Services."""
        watches, istio = self.watches, self.watches.istio
        yield Watch(watches.services, when=changed)
        yield Watch(watches.namespaces, to=self.of_namespace, when=changed)
        yield Watch(watches.policies, to=self.of_policy)
        yield Watch(istio.virtual_services, to=self.of_virtual_service, when=changed)
        yield Watch(istio.gateways, to=lambda c: istio.services_behind(c.key), when=changed)
        yield Watch(istio.pods, to=self.of_gateway_pods)
        if watches.ingresses is not None:
            yield Watch(watches.ingresses, to=self.of_ingress)
        if watches.callers is not None:
            yield Watch(watches.callers.pods, to=self.of_pod, when=changed)

    def of_policy(self, change: Change[SeenPolicy]) -> Iterator[Key]:
        """Yield the Services of a policy, unless the event reports our own write.

        For a deleted policy, also yield the Services that need a policy with its name.
        """
        old, new = change.old, change.new
        if new is None:
            yield from self.writer.gone(change.key)
        elif self.writer.is_as_written(change.key, new):
            return
        if old is None or new is None or (old.owner, old.digest) != (new.owner, new.digest):
            yield from (seen.owner for seen in (old, new) if seen is not None and seen.owner)

    def of_namespace(self, change: Change[SeenNamespace]) -> Iterator[Key]:
        """Yield the Services in a namespace, and those elsewhere whose callers may be in it."""
        old, new, name = change.old, change.new, change.key.name
        yield from self.watches.peers.namespace_changed(change)
        was_open, is_open = _is_open(old), _is_open(new)
        if was_open != is_open or self.watches.handles(old) != self.watches.handles(new):
            yield from self.watches.services_by_namespace.keys(name)
        controller = self.watches.ingress_controller
        exposed = self.watches.ingresses_by_service
        if controller and exposed and name == controller.namespace and was_open != is_open:
            yield from exposed.values()

    def of_pod(self, change: Change[frozenset[str]]) -> Iterator[Key]:
        """Yield the Services that a namespace's first or last pod with a label may call."""
        callers, namespace = self.watches.callers, change.key.namespace
        if callers is None:
            return
        new: frozenset[str] = change.new or frozenset()
        for label in new ^ (change.old or frozenset()):
            if len(callers.by_label.keys(Place(namespace, label))) == (1 if label in new else 0):
                yield from callers.services.keys(Place(namespace, label))
                for service in callers.services.keys(Place(ANYWHERE, label)):
                    if self.watches.peers.chooses(service, namespace):
                        yield service

    def of_ingress(self, change: Change[frozenset[Destination]]) -> Iterator[Key]:
        """Yield the Services that an Ingress starts or stops naming."""
        nothing: frozenset[Destination] = frozenset()
        moved = (change.old or nothing) ^ (change.new or nothing)
        return (destination.service for destination in moved)

    def of_virtual_service(self, change: Change[SeenVirtualService]) -> Iterator[Key]:
        """Yield the Services to which a VirtualService sends or sent traffic."""
        for seen in filter(None, (change.old, change.new)):
            yield from (destination.service for destination in seen.destinations)

    def of_gateway_pods(self, labels: Labels) -> Iterator[Key]:
        """Yield the Services to which Gateways with pods of these labels send traffic."""
        for gateway in self.watches.istio.by_labels.keys(labels):
            yield from self.watches.istio.services_behind(gateway)


def _is_open(namespace: SeenNamespace | None) -> bool:
    return namespace is not None and not namespace.terminating
