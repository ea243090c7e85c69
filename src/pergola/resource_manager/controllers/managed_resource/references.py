"""References to managed objects, as listed in the status of a ManagedResource (spec 10 §4.5).

A reference is plain JSON: `apiVersion`, `kind`, `name`, `namespace`, and the labels and annotations
of the manifest. Empty fields are omitted. If all references would not fit into a status, long
annotations are replaced with hashes, which suffice to notice whether a live value has changed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, Self

import orjson

from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, map_at

_APPS_AND_EXTENSIONS: Final = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
_NETWORKING_AND_EXTENSIONS: Final = ("Ingress", "NetworkPolicy")
_DEFAULTS: Final = (
    *({GroupKind("apps", k), GroupKind("extensions", k)} for k in _APPS_AND_EXTENSIONS),
    *(
        {GroupKind("networking.k8s.io", k), GroupKind("extensions", k)}
        for k in _NETWORKING_AND_EXTENSIONS
    ),
)


def reference(
    gvk: GroupVersionKind,
    key: Key,
    labels: Mapping[str, object],
    annotations: Mapping[str, object],
) -> JsonObject:
    """Return the reference to an object.

    Labels and annotations that are not strings are omitted: the server will reject the object
    because of them, but must not reject the status.
    """
    fields: JsonObject = {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "name": key.name,
        "namespace": key.namespace,
        "labels": _texts(labels),
        "annotations": _texts(annotations),
    }
    return {name: value for name, value in fields.items() if value}


def reference_kind(ref: JsonObject) -> GroupVersionKind:
    """Return the kind of the referenced object."""
    return GroupVersionKind.parse(ref.get("apiVersion") or "", ref.get("kind") or "")


def reference_key(ref: JsonObject) -> Key:
    """Return the key of the referenced object."""
    return Key(ref.get("namespace") or "", ref.get("name") or "")


def object_key(ref: JsonObject) -> str:
    """Return `<group>/<kind>/<namespace>/<name>`: the same for all versions of an object."""
    return object_key_of(reference_kind(ref), reference_key(ref))


def object_key_of(gvk: GroupVersionKind, key: Key) -> str:
    """Build an object key; an empty namespace counts as `default`, except for Namespaces."""
    return _format(gvk.group_kind, key)


def sort_references(references: Iterable[JsonObject]) -> list[JsonObject]:
    """Sort references by their object keys."""
    return sorted(references, key=object_key)


def same_references(left: Sequence[JsonObject], right: Sequence[JsonObject]) -> bool:
    """Return whether two lists are equal; empty and absent fields are equal."""
    if len(left) != len(right):
        return False
    return all(_essence(one) == _essence(other) for one, other in zip(left, right, strict=True))


LARGEST: Final = 1024 * 1024
"""The number of bytes up to which references are recorded as they are: etcd accepts 1.5 MiB."""

_HASH: Final = "sha256:"
_SHORT: Final = 80


def fitted(references: list[JsonObject], size: int | None = None) -> list[JsonObject]:
    """Return references that fit into a status: long annotations are replaced with their hashes.

    Args:
        size: their number of bytes, if it is known.
    """
    if size is None:
        size = sum(len(orjson.dumps(reference)) for reference in references)
    return references if size <= LARGEST else [_with_hashes(each) for each in references]


def is_recorded(value: str, recorded: str) -> bool:
    """Return whether a recorded annotation or label had this value."""
    return value == recorded or (recorded.startswith(_HASH) and _hashed(value) == recorded)


def _with_hashes(ref: JsonObject) -> JsonObject:
    annotations = map_at(ref, "annotations")
    if not annotations:
        return ref
    hashed = {k: _hashed(v) if len(v) > _SHORT else v for k, v in annotations.items()}
    return {**ref, "annotations": hashed}


def _hashed(value: str) -> str:
    return _HASH + hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


class Equivalences:
    """Equivalent kinds, under which an API server serves the same objects."""

    def __init__(self, sets: Iterable[Iterable[GroupKind]]) -> None:
        self._of: dict[GroupKind, frozenset[GroupKind]] = {}
        for kinds in sets:
            merged = frozenset(kinds)
            merged = merged.union(*(self._of.get(kind, frozenset()) for kind in merged))
            self._of.update(dict.fromkeys(merged, merged))

    @classmethod
    def of(cls, spec: JsonObject) -> Self:
        """Return the default equivalences and those of a ManagedResource's spec."""
        named = spec.get("equivalences")
        lists = named if isinstance(named, list) else []
        own = (
            {GroupKind(kind.get("group") or "", kind.get("kind") or "") for kind in kinds}
            for kinds in lists
        )
        return cls(chain(_DEFAULTS, own))

    def kinds(self, kind: GroupKind) -> frozenset[GroupKind]:
        """Return all kinds equivalent to a kind, itself included."""
        return self._of.get(kind) or frozenset((kind,))

    def index(self, references: Iterable[JsonObject]) -> "Previous":
        """Index the references in a status for lookups by equivalent kinds."""
        return Previous(self, references)


class Previous:
    """The previously managed objects; each reference can be taken once."""

    def __init__(self, equivalences: Equivalences, references: Iterable[JsonObject]) -> None:
        self._equivalences = equivalences
        self._by_key = {object_key(ref): ref for ref in references}
        self._taken: set[str] = set()

    def take(self, ref: JsonObject) -> JsonObject | None:
        """Return the previous reference to the same object, and mark it as still desired."""
        kind, key = reference_kind(ref).group_kind, reference_key(ref)
        others = self._equivalences.kinds(kind) - {kind}
        for candidate in (kind, *sorted(others)):
            found = self._by_key.get(_format(candidate, key))
            if found is not None:
                self._taken.add(object_key(found))
                return found
        return None

    def left(self) -> list[JsonObject]:
        """Return the references that were not taken, in the order of the status."""
        return [ref for key, ref in self._by_key.items() if key not in self._taken]


def _format(kind: GroupKind, key: Key) -> str:
    namespace = key.namespace or ("" if kind.kind == "Namespace" else "default")
    return f"{kind.group}/{kind.kind}/{namespace}/{key.name}"


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _essence(ref: JsonObject) -> tuple[object, ...]:
    return (
        *(ref.get(field) or "" for field in ("apiVersion", "kind", "name", "namespace")),
        map_at(ref, "labels"),
        map_at(ref, "annotations"),
    )
