"""Pods that are labelled as callers, if the configuration makes them matter."""

from collections.abc import Collection, Iterable

from pergola.api.kinds import POD
from pergola.api.objects import Key
from pergola.controllers.network_policy.intents import own_labels, peer_labels
from pergola.controllers.network_policy.seen import keep_pod
from pergola.controllers.network_policy.service import ServiceView
from pergola.kube.client import Client
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index

ANYWHERE = ""
"""The namespace of callers elsewhere, whose labels name the Service's namespace."""


class Callers:
    """Lookups of namespaces by the caller labels of their pods, and of Services by these labels."""

    def __init__(
        self, client: Client, services: Caches[ServiceView], namespaces: Collection[str]
    ) -> None:
        self.pods = Caches(client, POD, keep_pod, namespaces=namespaces, metadata_only=True)
        self.by_label: Index[frozenset[str], tuple[str, str]] = Index(
            self.pods, lambda key, labels: [(key.namespace, label) for label in labels]
        )
        self.services: Index[ServiceView, tuple[str, str]] = Index(services, _caller_labels)

    def has(self, namespace: str, label: str) -> bool:
        """Return whether a pod of the namespace has the label key."""
        return (namespace, label) in self.by_label


def _caller_labels(key: Key, service: ServiceView) -> Iterable[tuple[str, str]]:
    yield from ((key.namespace, label.key) for label in own_labels(service))
    if service.namespace_selectors:
        yield from ((ANYWHERE, label.key) for label in peer_labels(service))
