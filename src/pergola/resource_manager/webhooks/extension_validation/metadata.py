"""Validation of every object's metadata (spec 12 §15.1)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_subdomain, is_label_key, is_label_value
from pergola.api.field_errors import IMMUTABLE, Cause, forbidden, invalid, required
from pergola.api.objects import (
    JsonObject,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    map_at,
    maps_at,
    name_of,
    namespace_of,
)
from pergola.resource_manager.webhooks.extension_validation.findings import same_meaning

ANNOTATIONS_BYTES: Final = 256 * 1024
_FROZEN: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_LABEL_KEY: Final = "a label key is a name of at most 63 characters, after an optional prefix and /"
_LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def check_metadata(obj: JsonObject, *, namespaced: bool) -> Iterator[Cause]:
    """Yield findings about the metadata of an object to be stored."""
    name, generated = name_of(obj), map_at(obj, "metadata").get("generateName")
    if not name and not generated:
        yield required("metadata.name", "name or generateName is required")
    elif name and not is_dns_subdomain(name):
        yield invalid("metadata.name", name, _SUBDOMAIN)
    if namespaced and not namespace_of(obj):
        yield required("metadata.namespace")
    elif not namespaced and namespace_of(obj):
        yield forbidden("metadata.namespace", "not allowed on this type")
    if generation_of(obj) < 0:
        yield invalid(
            "metadata.generation", generation_of(obj), "must be greater than or equal to 0"
        )
    yield from _labels(obj)
    yield from _annotations(obj)
    yield from _owners(obj)


def check_metadata_update(new: JsonObject, old: JsonObject) -> Iterator[Cause]:
    """Yield findings about a change of metadata."""
    mine, theirs = map_at(new, "metadata"), map_at(old, "metadata")
    if not mine.get("resourceVersion"):
        yield required("metadata.resourceVersion", "must be specified for an update")
    for name in _FROZEN:
        if not same_meaning(mine.get(name), theirs.get(name)):
            yield invalid(f"metadata.{name}", mine.get(name), IMMUTABLE)
    added = [name for name in finalizers_of(new) if name not in finalizers_of(old)]
    if added and deletion_timestamp_of(old) is not None:
        yield forbidden(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new {added}",
        )


def _labels(obj: JsonObject) -> Iterator[Cause]:
    for key, value in map_at(obj, "metadata", "labels").items():
        if not is_label_key(key):
            yield invalid("metadata.labels", key, _LABEL_KEY)
        if not isinstance(value, str) or not is_label_value(value):
            yield invalid("metadata.labels", value, _LABEL_VALUE)


def _annotations(obj: JsonObject) -> Iterator[Cause]:
    annotations = map_at(obj, "metadata", "annotations")
    for key in annotations:
        if not is_label_key(key.lower()):
            yield invalid("metadata.annotations", key, _LABEL_KEY)
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES:
        yield Cause(
            "FieldValueTooLong",
            f"Too long: may not be more than {ANNOTATIONS_BYTES} bytes",
            "metadata.annotations",
        )


def _owners(obj: JsonObject) -> Iterator[Cause]:
    for index, owner in enumerate(maps_at(obj, "metadata", "ownerReferences")):
        at = f"metadata.ownerReferences[{index}]"
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{at}.{name}", owner.get(name) or "", "must not be empty")
