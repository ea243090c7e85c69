"""Caches of a process node: its pods, their volumes and the Services."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from pergola.api.kinds import CONFIG_MAP, POD, SECRET, SERVICE, VIRTUAL_SERVICE
from pergola.api.objects import JsonObject, Key, maps_at, name_of, namespace_of
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.watches import Watch
from pergola.sandbox.late_kinds import late_caches, whole
from pergola.sandbox.process_node.selection import LABEL
from pergola.sandbox.process_node.volumes import referenced

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}


class Observed:
    """Caches of one namespace or all, and the Services of all.

    Attributes:
        routes: the VirtualServices, whose kind may be defined later.
    """

    def __init__(self, client: Client, namespace: str | None) -> None:
        self.pods = Cache(client, POD, whole, namespace=namespace, labels=LABEL)
        self.services = Cache(client, SERVICE, whole)
        self._definitions, late = late_caches(client, [VIRTUAL_SERVICE], namespace)
        self.routes = late[VIRTUAL_SERVICE]
        self._objects = {
            name: Cache(client, kind, whole, namespace=namespace) for name, kind in _KINDS.items()
        }

    @property
    def caches(self) -> list[Cache[JsonObject]]:
        """All of them."""
        networks = (self.services, self._definitions, self.routes)
        return [self.pods, *networks, *self._objects.values()]

    def watches(self) -> list[Watch[Any, Key]]:
        """Return the watches that trigger workloads: of their pods and of mounted objects."""
        mounted = (
            Watch(cache, to=partial(self._mounting, kind)) for kind, cache in self._objects.items()
        )
        return [Watch(self.pods, to=_workloads), *mounted]

    def pods_of(self, workload: Key) -> Iterator[JsonObject]:
        """Yield the scheduled pods of a workload that are not being deleted."""
        for _, pod in self.pods.items():  # noqa: PERF102 - not a dict
            is_live = "deletionTimestamp" not in pod["metadata"]
            if is_live and workload_of(pod) == workload and "nodeName" in pod["spec"]:
                yield pod

    def find(self, kind: str, key: Key) -> JsonObject | None:
        """Return a Secret or ConfigMap, or None if it does not exist."""
        found = self._objects[kind].get(key)
        return None if found is None else {"kind": kind, **found}

    def _mounting(self, kind: str, change: Change[JsonObject]) -> Iterator[Key]:
        for _, pod in self.pods.items():  # noqa: PERF102 - not a dict
            if (kind, change.key) in referenced(pod):
                yield workload_of(pod)


def workload_of(pod: JsonObject) -> Key:
    """Return the name of the controller that owns a pod, or its own."""
    owners = maps_at(pod, "metadata", "ownerReferences")
    owner = next((owner["name"] for owner in owners if owner.get("controller")), name_of(pod))
    return Key(namespace_of(pod), owner)


def _workloads(change: Change[JsonObject]) -> Iterator[Key]:
    for pod in (change.old, change.new):
        if pod is not None:
            yield workload_of(pod)
