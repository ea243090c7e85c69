"""The nouns: objects, marks, conditions, and the types of our own API groups.

The functions exported here read the metadata of any object. `schema` declares types,
`field_errors` describes findings of validations, and each API group has its own module.

Not for: reading from or writing to a cluster.
"""

from pergola.api.conditions import get_condition, set_condition
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
    owner_reference,
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
    "get_condition",
    "labels_of",
    "map_at",
    "maps_at",
    "metadata_of",
    "name_of",
    "namespace_of",
    "owner_reference",
    "owner_references_of",
    "resource_version_of",
    "set_condition",
    "uid_of",
    "without_nulls",
]
