"""What an object should look like: its manifest, and what is kept of the live object (spec 10 §5).

Nothing here changes its arguments; results share what they did not change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    annotations_of,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    name_of,
    namespace_of,
)
from pergola.resource_manager.controllers.managed_resource.labels import inject_labels
from pergola.resource_manager.controllers.managed_resource.services import merge_service

class MergeError(ManifestError):
    """An object cannot be merged; the text says why."""


Scaled = frozenset[tuple[str, str, str, str]]
"""Group, kind, namespace and name of what HorizontalPodAutoscalers scale."""

_RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
_APPS: Final = ("apps", "extensions")


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """What a ManagedResource says about all its objects.

    Attributes:
        origin: the value of the origin annotation.
        labels: to inject, with the `managed-by` label.
    """

    origin: str
    labels: Mapping[str, str]
    force_labels: bool = False
    force_annotations: bool = False
    scaled: Scaled = field(default_factory=frozenset)


def for_creation(manifest: JsonObject, options: MergeOptions) -> JsonObject:
    """The object to create: the manifest with labels, origin and description."""
    obj = inject_labels(manifest, options.labels)
    annotations = {**annotations_of(obj), **_own_annotations(options)}
    obj["metadata"] = {**metadata_of(obj), "annotations": annotations}
    return _merge_kind(obj, obj, options)


def merge(
    manifest: JsonObject,
    live: JsonObject,
    *,
    previous: JsonObject | None,
    options: MergeOptions,
) -> JsonObject:
    """The object to update to.

    Args:
        live: as read; its resourceVersion is kept.
        previous: the reference in the status, with the labels and annotations of the manifest that
            was applied last.
    """
    wanted = inject_labels(manifest, options.labels)
    merged = {**wanted, "metadata": _metadata(wanted, live, previous or {}, options)}
    merged.pop("status", None)
    if live.get("status"):
        merged["status"] = live["status"]
    return _merge_kind(merged, live, options)


def _metadata(
    wanted: JsonObject, live: JsonObject, previous: JsonObject, options: MergeOptions
) -> JsonObject:
    labels = labels_of(wanted)
    if not options.force_labels:
        labels = _three_way(labels_of(live), labels, map_at(previous, "labels"))
    annotations = annotations_of(wanted)
    if not options.force_annotations:
        kept = {
            key: value
            for key, value in annotations_of(live).items()
            if not key.startswith(marks.REFERENCE_PREFIX)
        }
        annotations = _three_way(kept, annotations, map_at(previous, "annotations"))
    metadata = {
        **metadata_of(live),
        "labels": labels,
        "annotations": {**annotations, **_own_annotations(options)},
    }
    metadata.pop("ownerReferences", None)
    owners = metadata_of(wanted).get("ownerReferences")
    return {**metadata, "ownerReferences": owners} if owners else metadata


def _three_way(
    live: Mapping[str, str], wanted: Mapping[str, str], previous: Mapping[str, str]
) -> dict[str, str]:
    """Live, overwritten by wanted, without what left the manifest and nobody changed since."""
    left = {
        key
        for key, value in previous.items()
        if key not in wanted and key in live and live[key] == value
    }
    return {key: value for key, value in {**live, **wanted}.items() if key not in left}


def _own_annotations(options: MergeOptions) -> dict[str, str]:
    return {marks.DESCRIPTION: marks.DESCRIPTION_TEXT, marks.ORIGIN: options.origin}


# What single kinds keep (spec 10 §5.3)


def _merge_kind(merged: JsonObject, live: JsonObject, options: MergeOptions) -> JsonObject:
    gvk = GroupVersionKind.of(merged)
    rule = _RULES.get(gvk.group_kind)
    return merged if rule is None else rule(merged, live, options)


def _deployment(merged: JsonObject, live: JsonObject, options: MergeOptions) -> JsonObject:
    return _pod_template(_replicas(merged, live, options), live, ("spec", "template"))


def _stateful_set(merged: JsonObject, live: JsonObject, options: MergeOptions) -> JsonObject:
    merged = _deployment(merged, live, options)
    return _keep(merged, live, "spec", "volumeClaimTemplates")


def _daemon_set(merged: JsonObject, live: JsonObject, _: MergeOptions) -> JsonObject:
    return _pod_template(merged, live, ("spec", "template"))


def _job(merged: JsonObject, live: JsonObject, _: MergeOptions) -> JsonObject:
    merged = _keep(merged, live, "spec", "selector")
    labels = {
        **labels_of(map_at(live, "spec", "template")),
        **labels_of(map_at(merged, "spec", "template")),
    }
    if labels and merged is not live:
        merged = _put(merged, ("spec", "template", "metadata", "labels"), labels)
    return _pod_template(merged, live, ("spec", "template"))


def _cron_job(merged: JsonObject, live: JsonObject, _: MergeOptions) -> JsonObject:
    gvk = GroupVersionKind.of(merged)
    if gvk.version not in ("v1", "v1beta1"):
        raise MergeError(f"version {gvk.version} of CronJob is not supported; use batch/v1")
    return _pod_template(merged, live, ("spec", "jobTemplate", "spec", "template"))


def _service(merged: JsonObject, live: JsonObject, _: MergeOptions) -> JsonObject:
    return merge_service(merged, live)


def _service_account(merged: JsonObject, live: JsonObject, _: MergeOptions) -> JsonObject:
    if merged is live:
        return merged
    kept: JsonObject = {
        name: live[name] for name in ("secrets", "imagePullSecrets") if name in live
    }
    fields = {k: v for k, v in merged.items() if k not in ("secrets", "imagePullSecrets")}
    return {**fields, **kept}


Rule = Callable[[JsonObject, JsonObject, MergeOptions], JsonObject]
_RULES: Final[Mapping[GroupKind, Rule]] = {
    **{GroupKind(group, "Deployment"): _deployment for group in _APPS},
    **{GroupKind(group, "StatefulSet"): _stateful_set for group in _APPS},
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("batch", "Job"): _job,
    GroupKind("batch", "CronJob"): _cron_job,
    GroupKind("", "Service"): _service,
    GroupKind("", "ServiceAccount"): _service_account,
}


def _replicas(merged: JsonObject, live: JsonObject, options: MergeOptions) -> JsonObject:
    gvk = GroupVersionKind.of(merged)
    spec = map_at(merged, "spec")
    key = (gvk.group, gvk.kind, namespace_of(merged), name_of(merged))
    preserved = annotations_of(merged).get(marks.PRESERVE_REPLICAS) == "true"
    if spec.get("replicas") is not None and not preserved and key not in options.scaled:
        return merged
    return _keep(merged, live, "spec", "replicas") if map_at(live, "spec") else merged


def _pod_template(merged: JsonObject, live: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Keeps a restart that was asked for, and CPU and memory where that is asked for."""
    old = map_at(live, *path)
    restarted = annotations_of(old).get(_RESTARTED_AT)
    if restarted is not None and merged is not live:
        annotations = {**annotations_of(map_at(merged, *path)), _RESTARTED_AT: restarted}
        merged = _put(merged, (*path, "metadata", "annotations"), annotations)
    if annotations_of(merged).get(marks.PRESERVE_RESOURCES) != "true":
        return merged
    before = {container.get("name"): container for container in maps_at(old, "spec", "containers")}
    containers = [
        _preserved(container, before.get(container.get("name")))
        for container in maps_at(merged, *path, "spec", "containers")
    ]
    return _put(merged, (*path, "spec", "containers"), containers) if containers else merged


def _preserved(container: JsonObject, live: JsonObject | None) -> JsonObject:
    if live is None:
        return container
    resources = {**map_at(container, "resources")}
    for kind in ("requests", "limits"):
        kept = {
            name: amount
            for name, amount in map_at(live, "resources", kind).items()
            if name in ("cpu", "memory")
        }
        if kept:
            resources[kind] = {**map_at(resources, kind), **kept}
    return {**container, "resources": resources} if resources else container


def _keep(merged: JsonObject, live: JsonObject, *path: str) -> JsonObject:
    """The field as it is live, also if it is not there."""
    *parents, last = path
    holder = map_at(live, *parents)
    if last in holder:
        return _put(merged, path, holder[last])
    if last not in map_at(merged, *parents):
        return merged
    without = {k: v for k, v in map_at(merged, *parents).items() if k != last}
    return _put(merged, tuple(parents), without)


def _put(obj: JsonObject, path: tuple[str, ...], value: object) -> JsonObject:
    """The object with a value at a path; the maps on the way are copied."""
    first, *rest = path
    below = obj.get(first)
    inner = _put(below if isinstance(below, dict) else {}, tuple(rest), value) if rest else value
    return {**obj, first: inner}
