"""The objects of the runtime cluster that the operator keeps copies of, with one watch per kind.

They are the objects that a reconciliation without a change would read. A kind with only one or two
objects is read on demand instead: a watch must be renewed as often as that.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from pergola.api.kinds import (
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    SECRET,
    SERVICE,
    VERTICAL_POD_AUTOSCALER,
)
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import GroupVersionKind
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.service_mesh.permissions import NAMESPACE as ISTIO_SYSTEM
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Subscriber
from pergola.runtime.caching.client import CachingClient
from pergola.runtime.caching.packed import Packed
from pergola.runtime.caching.replica import Replica
from pergola.runtime.controlling.unit import Unit

T = TypeVar("T")

NAME: Final = "copies"

_DISRUPTION_BUDGET: Final = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
_SERVICE_MONITOR: Final = GroupVersionKind("monitoring.coreos.com", "v1", "ServiceMonitor")
_OF_GARDEN: Final = (
    MANAGED_RESOURCE,
    SECRET,
    CONFIG_MAP,
    SERVICE,
    DEPLOYMENT,
    ETCD,
    VERTICAL_POD_AUTOSCALER,
    _DISRUPTION_BUDGET,
    _SERVICE_MONITOR,
)

_Place: TypeAlias = tuple[GroupVersionKind, str | None]
_Subscription: TypeAlias = tuple[Cache[Packed], Subscriber[Packed]]


class Copies:
    """The copies of a runtime cluster's objects, shared by all controllers of the operator.

    Args:
        client: Of the runtime cluster.

    Attributes:
        client: Reads from the copies, or from the API server if they lack the object.
        unit: Keeps the copies up to date; must be run.
    """

    def __init__(self, client: Client) -> None:
        everywhere = (GARDEN, EXTENSION, NAMESPACE_KIND)
        replicas = [
            *(Replica(client, kind) for kind in everywhere),
            # Definitions are large, and only their versions are compared.
            Replica(client, CRD, metadata_only=True),
            *(Replica(client, kind, NAMESPACE) for kind in _OF_GARDEN),
            Replica(client, MANAGED_RESOURCE, ISTIO_SYSTEM),
        ]
        self._caches = {(each.gvk, each.namespace): each.cache for each in replicas}
        self.client = CachingClient(client, replicas)
        self.unit = Unit(NAME, beside=self._caches.values())

    def of(self, gvk: GroupVersionKind, namespace: str | None = None) -> Cache[Packed]:
        """Return the copies of a kind in a namespace, for subscribers."""
        return self._caches[gvk, namespace]

    def all(self) -> list[Cache[Packed]]:
        """Return all copies."""
        return [*self._caches.values()]

    def lend(self, build: Callable[[], T]) -> tuple[T, Callable[[], None]]:
        """Return the result of a function, and a function that ends the subscriptions it made.

        For parts that stop before the process does: their subscriptions would otherwise remain.
        """
        before = {key: len(cache.subscribers) for key, cache in self._caches.items()}
        try:
            built = build()
        except Exception:
            _unsubscribe(self._since(before))
            raise
        return built, partial(_unsubscribe, self._since(before))

    def _since(self, before: Mapping[_Place, int]) -> list[_Subscription]:
        return [
            (cache, subscriber)
            for place, cache in self._caches.items()
            for subscriber in cache.subscribers[before[place] :]
        ]


def _unsubscribe(subscriptions: Iterable[_Subscription]) -> None:
    for cache, subscriber in subscriptions:
        cache.unsubscribe(subscriber)
