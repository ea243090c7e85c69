"""The caches of care: verdicts about the objects of a runtime cluster."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.service_mesh.permissions import NAMESPACE as ISTIO_SYSTEM
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.health import deployment_problem, etcd_problem
from pergola.kube.selectors import format_selector
from pergola.operator.care.components import SeenResource
from pergola.operator.care.prometheus import CHECKED_BY, PROMETHEUS, Instance
from pergola.operator.copies import Copies
from pergola.operator.oldest import oldest
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.view import View

_CONTROL_PLANE: Final = format_selector({"matchLabels": {"gardener.cloud/role": "controlplane"}})
_CHECKED: Final = format_selector({"matchLabels": CHECKED_BY})


class SeenPart(NamedTuple):
    """An Etcd or Deployment of the control plane.

    Attributes:
        problem: Its problem; empty if it has none.
        signal: Its reported state; a change triggers a run.
    """

    problem: str
    signal: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Watches:
    """The caches of a runtime cluster that care reads.

    Attributes:
        prometheuses: The only kind that is not read elsewhere, so care runs its cache.
    """

    gardens: View[JsonObject]
    resources: tuple[View[SeenResource], ...]
    etcds: View[SeenPart]
    deployments: View[SeenPart]
    prometheuses: Cache[Instance]

    @classmethod
    def of(cls, copies: Copies) -> "Watches":
        """Return views of the copies of a cluster."""
        resources = (copies.of(MANAGED_RESOURCE, each) for each in (NAMESPACE, ISTIO_SYSTEM))
        etcds, deployments = copies.of(ETCD, NAMESPACE), copies.of(DEPLOYMENT, NAMESPACE)
        return cls(
            View(copies.of(GARDEN), _without_managed_fields),
            tuple(View(each, SeenResource.of) for each in resources),
            View(etcds, _etcd, labels=_CONTROL_PLANE),
            View(deployments, _deployment, labels=_CONTROL_PLANE),
            Cache(copies.client, PROMETHEUS, Instance.of, namespace=NAMESPACE, labels=_CHECKED),
        )

    def seen_resources(self) -> dict[Key, SeenResource]:
        """Return the ManagedResources of all namespaces."""
        return {key: seen for view in self.resources for key, seen in view.items()}

    def oldest(self) -> Key | None:
        """Return the Garden of the cluster: the oldest, if there are several."""
        found = oldest(garden for _, garden in self.gardens.items())
        return Key.of(found) if found else None


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
