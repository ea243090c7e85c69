"""The desired object: its manifest, merged with kept fields of the live object (spec 10 §5).

Functions do not change their arguments; results share unchanged parts with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    metadata_of,
)
from pergola.resource_manager.controllers.managed_resource.compare import is_kept_by_kubernetes
from pergola.resource_manager.controllers.managed_resource.keep import (
    Keeping,
    MergeError,
    keep_by_kind,
    without_generated_selector,
)
from pergola.resource_manager.controllers.managed_resource.labels import inject_labels
from pergola.resource_manager.controllers.managed_resource.references import is_recorded

__all__ = ["MergeError", "MergeOptions", "Scaled", "for_creation", "is_scaled", "merge"]

Scaled = frozenset[tuple[str, str, str, str]]
"""Group, kind, namespace and name of the objects that HorizontalPodAutoscalers scale."""

_EXACTLY_TRUE: Final = "true"
_JOB: Final = GroupKind("batch", "Job")
_OF_SERVER: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Metadata that the server rejects, or sets itself, when an object is created."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Options of a ManagedResource that apply to all its objects.

    `Settled` must notice if any of them changes: the fingerprint of an object contains labels and
    flags; origin and `scaled` are compared.

    Attributes:
        origin: the value of the origin annotation.
        labels: to inject, with the `managed-by` label.
    """

    origin: str
    labels: Mapping[str, str]
    force_labels: bool = False
    force_annotations: bool = False
    scaled: Scaled = field(default_factory=frozenset)


def is_scaled(gvk: GroupVersionKind, key: Key, options: MergeOptions) -> bool:
    """Return whether a HorizontalPodAutoscaler owns the replicas of an object."""
    return (gvk.group, gvk.kind, key.namespace, key.name) in options.scaled


def for_creation(manifest: JsonObject, options: MergeOptions) -> JsonObject:
    """Return the object to create: the manifest with labels, origin and description.

    Raises:
        ManifestError: it cannot be labelled, or its version is not supported.
    """
    obj = inject_labels(without_server_fields(manifest), options.labels)
    annotations = {**annotations_of(obj), **_own_annotations(options)}
    obj["metadata"] = {**metadata_of(obj), "annotations": annotations}
    return keep_by_kind(obj, obj, _keeping(manifest, options))


def without_server_fields(manifest: JsonObject) -> JsonObject:
    """Return a manifest without fields that belong to the server, as an exported one has them."""
    kept = {k: v for k, v in metadata_of(manifest).items() if k not in _OF_SERVER}
    created = {**manifest, "metadata": kept}
    kind = GroupVersionKind.of(manifest).group_kind
    return without_generated_selector(created) if kind == _JOB else created


def merge(
    manifest: JsonObject,
    live: JsonObject,
    *,
    previous: JsonObject | None,
    options: MergeOptions,
) -> JsonObject:
    """Return the object to send as an update.

    Args:
        live: as read; its resourceVersion is kept.
        previous: the reference in the status, with the labels and annotations of the last applied
            manifest.

    Raises:
        ManifestError: the manifest cannot be labelled, or its version is not supported.
    """
    desired = inject_labels(manifest, options.labels)
    merged = {**desired, "metadata": _metadata(desired, live, previous or {}, options)}
    merged.pop("status", None)
    if live.get("status"):
        merged["status"] = live["status"]
    return keep_by_kind(merged, live, _keeping(manifest, options))


def _metadata(
    desired: JsonObject, live: JsonObject, previous: JsonObject, options: MergeOptions
) -> JsonObject:
    labels = labels_of(desired)
    if not options.force_labels:
        labels = _three_way(labels_of(live), labels, map_at(previous, "labels"))
    annotations = {
        **{k: v for k, v in annotations_of(live).items() if is_kept_by_kubernetes(k)},
        **annotations_of(desired),
    }
    if not options.force_annotations:
        kept = {
            key: value
            for key, value in annotations_of(live).items()
            if not key.startswith(marks.REFERENCE_PREFIX)
        }
        annotations = _three_way(kept, annotations_of(desired), map_at(previous, "annotations"))
    metadata = {
        **metadata_of(live),
        "labels": labels,
        "annotations": {**annotations, **_own_annotations(options)},
    }
    metadata.pop("ownerReferences", None)
    owners = metadata_of(desired).get("ownerReferences")
    return {**metadata, "ownerReferences": owners} if owners else metadata


def _three_way(
    live: Mapping[str, str], desired: Mapping[str, str], previous: Mapping[str, str]
) -> dict[str, str]:
    """Merge desired entries over live ones, and drop unmodified entries that left the manifest."""
    left = {
        key
        for key, value in previous.items()
        if key not in desired and key in live and is_recorded(live[key], value)
    }
    return {key: value for key, value in {**live, **desired}.items() if key not in left}


def _own_annotations(options: MergeOptions) -> dict[str, str]:
    return {marks.DESCRIPTION: marks.DESCRIPTION_TEXT, marks.ORIGIN: options.origin}


def _keeping(manifest: JsonObject, options: MergeOptions) -> Keeping:
    """Return the fields that the manifest (not the live object) requests to keep (spec 10 §1.1)."""
    annotations = annotations_of(manifest)
    gvk, key = GroupVersionKind.of(manifest), Key.of(manifest)
    return Keeping(
        replicas=is_scaled(gvk, key, options)
        or annotations.get(marks.PRESERVE_REPLICAS) == _EXACTLY_TRUE,
        resources=annotations.get(marks.PRESERVE_RESOURCES) == _EXACTLY_TRUE,
        injected=options.labels,
    )
