"""The nouns: objects, marks, conditions, and the types of our own API groups.

These names read the metadata of any object. Types to declare are in `schema`, findings of a
validation in `field_errors`, and each API group has a module of its own.

Not for: reading from or writing to a cluster.
"""

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    name_of,
    namespace_of,
    owner_references_of,
    resource_version_of,
    uid_of,
    without_nulls,
)

__all__ = [
    "GroupKind",
    "GroupVersionKind",
    "JsonObject",
    "JsonValue",
    "Key",
    "annotations_of",
    "deletion_timestamp_of",
    "finalizers_of",
    "generation_of",
    "labels_of",
    "map_at",
    "maps_at",
    "metadata_of",
    "name_of",
    "namespace_of",
    "owner_references_of",
    "resource_version_of",
    "uid_of",
    "without_nulls",
]
