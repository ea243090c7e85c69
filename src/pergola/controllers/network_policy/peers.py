"""The namespaces whose labelled pods may call a Service (spec 11 §4.5)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.intents import canonical
from pergola.controllers.network_policy.seen import SeenNamespace
from pergola.controllers.network_policy.service import ServiceView
from pergola.kube.selectors import matches
from pergola.runtime.caching.cache import Change, Subscriber
from pergola.runtime.caching.index import Index

T = TypeVar("T")


def peers_of(service: ServiceView, namespaces: Mapping[str, SeenNamespace]) -> list[str]:
    """Return a Service's namespace and those its selectors match; none if its own terminates."""
    chosen = {
        name
        for name, namespace in namespaces.items()
        if any(_chooses(selector, namespace) for selector in service.namespace_selectors)
    }
    return _in_order(service, namespaces.get(service.key.namespace), chosen)


class Looked(Protocol[T]):
    """A single cache, or several."""

    def get(self, key: Key) -> T | None:
        """Return the facts about an object."""
        ...

    def items(self) -> Iterator[tuple[Key, T]]:
        """Yield all keys with their facts."""
        ...

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change."""
        ...


class Peers:
    """Peers kept up to date: each selector is evaluated once per change of a Namespace.

    Many Services share few selectors, so results are stored by selector.
    """

    def __init__(self, services: Looked[ServiceView], namespaces: Looked[SeenNamespace]) -> None:
        self._services = services
        self._namespaces = namespaces
        self._selectors: dict[bytes, JsonObject] = {}
        self._chosen: dict[bytes, set[str]] = {}
        self._users: Index[ServiceView, bytes] = Index(services, _identities)
        services.subscribe(self._service_changed)

    def of(self, service: ServiceView) -> list[str]:
        """Return the same as `peers_of`."""
        sets = (self._chosen.get(text, set()) for text in _identities(service.key, service))
        own = self._namespaces.get(Key("", service.key.namespace))
        return _in_order(service, own, set().union(*sets))

    def chooses(self, service: Key, namespace: str) -> bool:
        """Return whether a selector of a Service matches a namespace."""
        view = self._services.get(service)
        return view is not None and any(
            namespace in self._chosen.get(text, ()) for text in _identities(service, view)
        )

    def namespace_changed(self, change: Change[SeenNamespace]) -> set[Key]:
        """Store a change; return the Services that gain or lose the namespace as a peer."""
        name = change.key.name
        affected: set[Key] = set()
        for text, chosen in self._chosen.items():
            is_chosen = change.new is not None and _chooses(self._selectors[text], change.new)
            if is_chosen == (name in chosen):
                continue
            if is_chosen:
                chosen.add(name)
            else:
                chosen.discard(name)
            affected.update(self._users.keys(text))
        return affected

    def _service_changed(self, change: Change[ServiceView]) -> None:
        for selector in _selectors_of(change.new):
            text = canonical(selector)
            if text not in self._selectors:
                self._selectors[text] = selector
                self._chosen[text] = {
                    key.name for key, seen in self._namespaces.items() if _chooses(selector, seen)
                }
        for selector in _selectors_of(change.old):
            text = canonical(selector)
            if text not in self._users and text in self._selectors:
                del self._selectors[text], self._chosen[text]


def _in_order(service: ServiceView, own: SeenNamespace | None, chosen: set[str]) -> list[str]:
    if own is not None and own.terminating:
        return []
    return [service.key.namespace, *sorted(chosen - {service.key.namespace})]


def _chooses(selector: JsonObject, namespace: SeenNamespace) -> bool:
    """Return whether a selector matches a namespace; terminating ones never match."""
    return not namespace.terminating and matches(selector, namespace.labels)


def _selectors_of(service: ServiceView | None) -> Iterable[JsonObject]:
    return service.namespace_selectors if service is not None else ()


def _identities(_: Key, service: ServiceView) -> list[bytes]:
    return [canonical(selector) for selector in service.namespace_selectors]
