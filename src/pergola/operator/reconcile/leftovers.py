"""Checks that hold a deletion until it would orphan nothing (spec 20 §18)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.api.texts import abridged
from pergola.garden.landscape.errors import NotReady, OperatorError
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.run.waiting import Note, gone, wait_until
from pergola.runtime.clock import monotonic

AGAIN_SECONDS: Final = 5.0
"""The delay before checking again for objects that still exist."""

_LIMIT: Final = 60.0
_NAMED: Final = 5
_COPY_TASK: Final = GroupVersionKind("druid.gardener.cloud", "v1alpha1", "EtcdCopyBackupsTask")
_SYSTEM: Final = "kube-system"


class StillExists(OperatorError):
    """Objects exist that must be gone before the deletion continues; the text names them."""

    after: Final = AGAIN_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """ManagedResources of one class.

    Attributes:
        resource_class: Empty for the default class.
        names: Names of ManagedResources that may exist.
        namespaces: Namespaces whose ManagedResources may exist.
    """

    resource_class: str = ""
    names: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset({_SYSTEM})

    def selects(self, resource: JsonObject) -> bool:
        """Return whether a ManagedResource must be gone."""
        key = Key.of(resource)
        is_of_class = str(map_at(resource, "spec").get("class") or "") == self.resource_class
        return is_of_class and key.name not in self.names and key.namespace not in self.namespaces


async def ensure_none(client: Client, selection: Selection, note: Note) -> None:
    """Wait for up to a minute until none of these ManagedResources exists.

    Raises:
        StillExists: Some still exist.
        KubeError: The API server refused, or did not answer.
    """
    end = monotonic() + _LIMIT
    while left := await _managed(client, selection):
        seconds = end - monotonic()
        try:
            await wait_until(client, MANAGED_RESOURCE, left[0], gone, max(seconds, 0.0), note)
        except NotReady:
            raise _still_exists(selection, left) from None


async def ensure_no_etcds(client: Client) -> None:
    """Check that etcd-druid has no objects left to handle.

    Raises:
        StillExists: An Etcd, or a task that copies backups, exists.
        KubeError: The API server refused, or did not answer.
    """
    for kind in (ETCD, _COPY_TASK):
        found = await listed(client, kind)
        if found:
            names = _shown(Key.of(obj) for obj in found)
            raise StillExists(f"etcd-druid is needed while {kind.kind} {names} exists")


async def listed(client: Client, kind: GroupVersionKind) -> list[JsonObject]:
    """Return all objects of a kind; none if the API server no longer serves it."""
    try:
        return await client.list(kind)
    except UnknownKind:
        return []


async def _managed(client: Client, selection: Selection) -> list[Key]:
    found = await listed(client, MANAGED_RESOURCE)
    return sorted(Key.of(resource) for resource in found if selection.selects(resource))


def _still_exists(selection: Selection, left: Iterable[Key]) -> StillExists:
    of_class = f' with class "{selection.resource_class}"' if selection.resource_class else ""
    return StillExists(f"at least one ManagedResource{of_class} still exists: {_shown(left)}")


def _shown(keys: Iterable[Key]) -> str:
    return abridged([*map(str, keys)], _NAMED)
