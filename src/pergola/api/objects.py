"""Objects of any kind as JSON, and readers of their metadata.

Objects of other projects are plain JSON, never typed models, which could drop unknown fields. The
readers never raise on a malformed object: a missing or mistyped part counts as absent, because
manifests are user input.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, overload

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
"""Any JSON value."""
# Kubernetes objects are nested too deeply for a recursive alias to help a reader of the code.
JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, such as an object of Kubernetes as the API server returns it."""


class GroupKind(NamedTuple):
    """A kind, regardless of its version."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionKind(NamedTuple):
    """A kind in a specific version. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> "GroupVersionKind":
        """Read `apiVersion` and `kind`; a value that is absent or not a string counts as empty."""
        return cls.parse(_string(obj.get("apiVersion")), _string(obj.get("kind")))

    @classmethod
    def parse(cls, api_version: str, kind: str) -> "GroupVersionKind":
        """Parse `apps/v1`, `Deployment` into (`apps`, `v1`, `Deployment`)."""
        return _parsed(api_version, kind)

    @property
    def api_version(self) -> str:
        """The group and version as in manifests: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The kind without its version."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


@lru_cache(maxsize=1024)
def _parsed(api_version: str, kind: str) -> GroupVersionKind:
    """Parse each combination once: there are few kinds with thousands of objects each."""
    group, slash, version = api_version.rpartition("/")
    return GroupVersionKind(group if slash else "", version, kind)


class Key(NamedTuple):
    """The namespace and name of an object; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> "Key":
        """Return the key of an object."""
        return cls(sys.intern(namespace_of(obj)), name_of(obj))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Identity(NamedTuple):
    """The kind and the key of an object in a cluster."""

    gvk: GroupVersionKind
    key: Key


def metadata_of(obj: Mapping[str, Any]) -> JsonObject:
    """Return the metadata, or an empty map (not attached to the object) if there is none."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def name_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.name`, empty if absent."""
    return _string(metadata_of(obj).get("name"))


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.namespace`, empty if absent."""
    return _string(metadata_of(obj).get("namespace"))


def uid_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.uid`, empty before the object is created."""
    return _string(metadata_of(obj).get("uid"))


def resource_version_of(obj: Mapping[str, Any]) -> str:
    """Return `metadata.resourceVersion`, empty before the object is created."""
    return _string(metadata_of(obj).get("resourceVersion"))


def generation_of(obj: Mapping[str, Any]) -> int:
    """Return `metadata.generation`; 0 for kinds without one."""
    generation = metadata_of(obj).get("generation")
    return generation if isinstance(generation, int) else 0


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata.labels`, or an empty map (not attached to the object)."""
    return _string_map(metadata_of(obj).get("labels"))


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return `metadata.annotations`, or an empty map (not attached to the object)."""
    return _string_map(metadata_of(obj).get("annotations"))


def finalizers_of(obj: Mapping[str, Any]) -> list[str]:
    """Return `metadata.finalizers`, or an empty list."""
    finalizers = metadata_of(obj).get("finalizers")
    return finalizers if isinstance(finalizers, list) else []


def deletion_timestamp_of(obj: Mapping[str, Any]) -> str | None:
    """Return `metadata.deletionTimestamp` (RFC 3339), or None before the object is deleted."""
    return metadata_of(obj).get("deletionTimestamp") or None


def owner_references_of(obj: Mapping[str, Any]) -> list[JsonObject]:
    """Return `metadata.ownerReferences`, or an empty list."""
    owners = metadata_of(obj).get("ownerReferences")
    return [o for o in owners if isinstance(o, dict)] if isinstance(owners, list) else []


def owner_reference(owner: Mapping[str, Any], *, is_controller: bool = True) -> JsonObject:
    """Return the reference that makes an object belong to its owner, and disappear with it.

    Args:
        is_controller: whether the owner manages the object; an object has one such owner at most.

    Raises:
        KeyError: the owner has no `apiVersion`, `kind`, name or uid: it was not read from a server.
    """
    reference: JsonObject = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    if is_controller:
        reference |= {"controller": True, "blockOwnerDeletion": True}
    return reference


def map_at(obj: Mapping[str, Any], *path: str) -> JsonObject:
    """Return the map at `path`, or an empty one (not attached) if there is no map."""
    here: Any = obj
    for step in path:
        here = here.get(step) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def maps_at(obj: Mapping[str, Any], *path: str) -> list[JsonObject]:
    """Return the maps in the list at `path`; items of another type are left out."""
    *parents, last = path
    items = map_at(obj, *parents).get(last) if parents else obj.get(last)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


@overload
def without_empty(value: JsonObject) -> JsonObject: ...
@overload
def without_empty(value: JsonValue) -> JsonValue: ...
def without_empty(value: JsonValue) -> JsonValue:
    """Return a value without nulls, and without empty maps and lists, in its maps.

    Go programs write or omit them without a difference in meaning.
    """
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empty(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if each not in (None, {}, [])}


def without_nulls(value: Mapping[str, Any]) -> JsonObject:
    """Return a map without nulls, including those in nested maps, as Go's decoder reads it."""
    return {
        name: without_nulls(item) if isinstance(item, dict) else item
        for name, item in value.items()
        if item is not None
    }


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _string_map(value: object) -> dict[str, str]:
    return value if isinstance(value, dict) else {}
