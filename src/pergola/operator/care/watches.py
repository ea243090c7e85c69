"""The caches of a runtime cluster that care reads, and what they keep of each object."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, metadata_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.health import deployment_problem, etcd_problem
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.operator.care.components import SeenResource
from pergola.operator.care.prometheus import CHECKED_BY, PROMETHEUS, Instance
from pergola.operator.components.service_mesh.permissions import NAMESPACE as ISTIO_SYSTEM
from pergola.operator.garden.landscape import NAMESPACE
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.caches import Caches

ETCD: Final = GroupVersionKind("druid.gardener.cloud", "v1alpha1", "Etcd")
_CONTROL_PLANE: Final = format_selector({"matchLabels": {"gardener.cloud/role": "controlplane"}})
_CHECKED: Final = format_selector({"matchLabels": CHECKED_BY})


class SeenPart(NamedTuple):
    """An Etcd or Deployment of the control plane.

    Attributes:
        problem: What is wrong with it; empty if nothing is.
        signal: What it says about itself; a change of it is worth a run.
    """

    problem: str
    signal: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Watches:
    """The caches of a runtime cluster that care reads."""

    gardens: Cache[JsonObject]
    resources: Caches[SeenResource]
    etcds: Cache[SeenPart]
    deployments: Cache[SeenPart]
    prometheuses: Cache[Instance]

    @classmethod
    def of(cls, client: Client) -> "Watches":
        """Return caches of a cluster, which are empty until they run."""
        return cls(
            Cache(client, GARDEN, _without_managed_fields),
            Caches(client, MANAGED_RESOURCE, SeenResource.of, namespaces=(NAMESPACE, ISTIO_SYSTEM)),
            Cache(client, ETCD, _etcd, namespace=NAMESPACE, labels=_CONTROL_PLANE),
            Cache(client, DEPLOYMENT, _deployment, namespace=NAMESPACE, labels=_CONTROL_PLANE),
            Cache(client, PROMETHEUS, Instance.of, namespace=NAMESPACE, labels=_CHECKED),
        )

    def oldest(self) -> Key | None:
        """Return the Garden that the cluster belongs to: the oldest, if there are several."""
        found = [(_age(garden), key) for key, garden in self.gardens.items()]
        return min(found)[1] if found else None


def _without_managed_fields(garden: JsonObject) -> JsonObject:
    kept = {name: value for name, value in metadata_of(garden).items() if name != "managedFields"}
    return {**garden, "metadata": kept}


def _etcd(etcd: JsonObject) -> SeenPart:
    ready = map_at(etcd, "status").get("ready")
    return SeenPart(etcd_problem(etcd), (ready, *_statuses(etcd, "BackupReady")))


def _deployment(deployment: JsonObject) -> SeenPart:
    types = ("Available", "Progressing", "ReplicaFailure")
    return SeenPart(deployment_problem(deployment), tuple(_statuses(deployment, *types)))


def _statuses(obj: JsonObject, *types: str) -> Iterator[tuple[object, object]]:
    for condition in maps_at(obj, "status", "conditions"):
        if condition.get("type") in types:
            yield condition["type"], condition.get("status")


def _age(garden: JsonObject) -> str:
    return str(metadata_of(garden).get("creationTimestamp") or "")
