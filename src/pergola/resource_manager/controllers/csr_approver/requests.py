"""The undecided CertificateSigningRequests."""

from collections.abc import Callable, Collection
from typing import Final

from pergola.api.kinds import CSR
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.resource_manager.controllers.csr_approver.rules import node_name
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
API_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
_DECISIONS: Final = frozenset({"Approved", "Denied"})


class Requests:
    """The undecided requests for our two signers."""

    def __init__(self, client: Client) -> None:
        self._kubelets = _cache(client, KUBELET_SERVING)
        self.caches = (self._kubelets, _cache(client, API_CLIENT))
        self._by_node = Index(self._kubelets, _node_names)

    def undecided(self, key: Key) -> JsonObject | None:
        """Return the cached request, or None if it is decided or deleted."""
        found = (cache.get(key) for cache in self.caches)
        return next((csr for csr in found if csr is not None), None)

    def of_node(self, name: str) -> Collection[Key]:
        """Return a kubelet's undecided requests; do not hold the result across an await."""
        return self._by_node.keys(name)

    def observe(self, csr: JsonObject) -> None:
        """Store the result of a write."""
        signer = map_at(csr, "spec").get("signerName")
        self.caches[signer != KUBELET_SERVING].observe(csr)

    def subscribe(self, subscriber: Callable[[Key], None]) -> None:
        """Call `subscriber` with each undecided request that appears or changes."""

        def changed(change: Change[JsonObject | None]) -> None:
            if change.new is not None:
                subscriber(change.key)

        for cache in self.caches:
            cache.subscribe(changed)


def keep_undecided(csr: JsonObject) -> JsonObject | None:
    """Return the whole request, which will be written back, or None once it is decided."""
    conditions = maps_at(csr, "status", "conditions")
    decided = any(condition.get("type") in _DECISIONS for condition in conditions)
    return None if decided or map_at(csr, "status").get("certificate") else csr


def _cache(client: Client, signer: str) -> Cache[JsonObject | None]:
    return Cache(client, CSR, keep_undecided, fields=f"spec.signerName={signer}")


def _node_names(_: Key, csr: JsonObject | None) -> Collection[str]:
    name = node_name(map_at(csr, "spec").get("username") or "") if csr else ""
    return (name,) if name else ()
