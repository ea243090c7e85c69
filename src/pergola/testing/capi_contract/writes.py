"""The writers of an object's fields, derived from its successive states.

Each effective write changes the resourceVersion, and managedFields record its writer. Core's writes
to each InfraCluster (its owner reference and its label, spec 50 §4.5) do not count as a provider's.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pergola.api.cluster_api import CLUSTER_GROUP, CLUSTER_NAME
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    labels_of,
    maps_at,
    metadata_of,
    owner_references_of,
    resource_version_of,
)

_SERVERS_OWN: Final = (
    "resourceVersion",
    "managedFields",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_DEPTH: Final = 3
_UNKNOWN: Final = "somebody"


class Write(NamedTuple):
    """One change of an object.

    Attributes:
        managers: the writers, according to managedFields.
        paths: the changed fields.
    """

    managers: tuple[str, ...]
    paths: tuple[str, ...]

    def __str__(self) -> str:
        who = " and ".join(f'"{name}"' for name in self.managers) or _UNKNOWN
        return f"{who} changed {', '.join(self.paths)}"


def foreign_writes(states: Sequence[JsonObject], ours: Collection[str]) -> list[Write]:
    """Return the writes between the states of an object that are neither ours nor core's.

    Args:
        states: all states, in order.
        ours: the resourceVersions of our own writes.
    """
    found = []
    for before, after in pairwise(states):
        if resource_version_of(after) in ours:
            continue
        paths = tuple(_differing(_content(before), _content(after)))
        if paths:
            found.append(Write(tuple(_writers(before, after)), paths))
    return found


def _content(obj: JsonObject) -> JsonObject:
    """Return an object without the fields that the API server and core write."""
    metadata = {k: v for k, v in metadata_of(obj).items() if k not in _SERVERS_OWN}
    labels = {k: v for k, v in labels_of(obj).items() if k != CLUSTER_NAME}
    owners = [owner for owner in owner_references_of(obj) if not _is_cluster(owner)]
    return {**obj, "metadata": {**metadata, "labels": labels, "ownerReferences": owners}}


def _is_cluster(owner: JsonObject) -> bool:
    gvk = GroupVersionKind.of(owner)
    return (gvk.group, gvk.kind) == (CLUSTER_GROUP, "Cluster")


def _differing(before: JsonObject, after: JsonObject, path: str = "") -> Iterator[str]:
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        below = f"{path}.{name}" if path else name
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict) and below.count(".") < _DEPTH - 1:
            yield from _differing(one, other, below)
        else:
            yield below


def _writers(before: JsonObject, after: JsonObject) -> Iterator[str]:
    known = maps_at(before, "metadata", "managedFields")
    fresh = [e for e in maps_at(after, "metadata", "managedFields") if e not in known]
    yield from sorted({str(entry.get("manager", _UNKNOWN)) for entry in fresh})
