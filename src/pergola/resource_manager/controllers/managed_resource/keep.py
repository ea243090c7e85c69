"""Live fields that updates of certain kinds preserve (spec 10 §5.3)."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    annotations_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.kube.equality import shape_of, with_assigned
from pergola.kube.quantities import QuantityError, parse_quantity
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError
from pergola.resource_manager.controllers.managed_resource.services import merge_service

_RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
_APPS: Final = ("apps", "extensions")
_ADJUSTED: Final = ("cpu", "memory")
_SERVICE: Final = GroupKind("", "Service")
"""Which assigned values a Service keeps depends on both types; see `services`."""

_GENERATED: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type


class MergeError(ManifestError):
    """An object cannot be merged; the text says why."""


class Keeping(NamedTuple):
    """Options for preserving more than the kind requires.

    Attributes:
        replicas: although the manifest names a number.
        resources: labels that were injected into the manifest.
        injected: labels that were put into the manifest.
    """

    replicas: bool
    resources: bool
    injected: Mapping[str, str]


def keep_by_kind(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    """Return the merged object with the live fields that its kind preserves.

    Raises:
        MergeError: the fields to preserve are unknown for this version of the kind.
    """
    kind = GroupVersionKind.of(merged).group_kind
    rule = _RULES.get(kind)
    if rule is not None:
        merged = rule(merged, live, keeping)
    return merged if kind == _SERVICE else with_assigned(merged, live, shape_of(kind))


def _deployment(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    if keeping.replicas or map_at(merged, "spec").get("replicas") is None:
        merged = _keep(merged, live, "spec", "replicas")
    return _pod_template(merged, live, ("spec", "template"), keeping)


def _stateful_set(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    merged = _deployment(merged, live, keeping)
    return _keep(merged, live, "spec", "volumeClaimTemplates")


def _daemon_set(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    return _pod_template(merged, live, ("spec", "template"), keeping)


def _job(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    """Keep a Job's template, which is immutable: add no labels injected later (spec 10 B12)."""
    if merged is live:
        return merged
    merged = without_generated_selector(merged)
    present = labels_of(map_at(live, "spec", "template"))
    desired = labels_of(map_at(merged, "spec", "template"))
    own = {k: v for k, v in desired.items() if keeping.injected.get(k) != v}
    if isinstance(map_at(merged, "spec").get("template"), dict):
        merged = _put(merged, ("spec", "template", "metadata", "labels"), {**present, **own})
    merged = _keep(merged, live, "spec", "selector")
    return _pod_template(merged, live, ("spec", "template"), keeping)


def without_generated_selector(job: JsonObject) -> JsonObject:
    """Return a Job to create without the selector and labels that the server generates."""
    spec = map_at(job, "spec")
    if spec.get("manualSelector"):
        return job
    chosen = map_at(spec, "selector", "matchLabels")
    if not set(chosen) & set(_GENERATED):
        return job
    labels = labels_of(map_at(spec, "template"))
    own = {k: v for k, v in labels.items() if k not in _GENERATED}
    job = _put(job, ("spec", "template", "metadata", "labels"), own)
    return {**job, "spec": {k: v for k, v in map_at(job, "spec").items() if k != "selector"}}


def _cron_job(merged: JsonObject, live: JsonObject, keeping: Keeping) -> JsonObject:
    version = GroupVersionKind.of(merged).version
    if version not in ("v1", "v1beta1"):
        raise MergeError(f"version {version} of CronJob is not supported; use batch/v1")
    return _pod_template(merged, live, ("spec", "jobTemplate", "spec", "template"), keeping)


def _service(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    return merge_service(merged, live)


def _claim(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    """Keep a larger request of a bound claim: claims cannot shrink."""
    is_bound = bool(map_at(live, "spec").get("volumeName"))
    return _larger(merged, live, "spec", "resources", "requests") if is_bound else merged


def _volume(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    """Keep a larger capacity of a bound volume: its claim was expanded."""
    is_bound = bool(map_at(live, "spec", "claimRef").get("uid"))
    return _larger(merged, live, "spec", "capacity") if is_bound else merged


def _larger(merged: JsonObject, live: JsonObject, *path: str) -> JsonObject:
    """Return the object with the larger of both amounts of storage."""
    before, desired = (map_at(obj, *path).get("storage") for obj in (live, merged))
    if not isinstance(before, str) or not isinstance(desired, str | int | float):
        return merged
    try:
        grew = parse_quantity(before) > parse_quantity(desired)
    except QuantityError:
        return merged
    return _put(merged, (*path, "storage"), before) if grew else merged


def _scaled(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    """Keep the replicas that the manifest leaves to an autoscaler."""
    if map_at(merged, "spec").get("replicas") is not None:
        return merged
    return _keep(merged, live, "spec", "replicas")


def _secret(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    """Keep the token that Kubernetes writes into a Secret for it."""
    if merged.get("type") != _TOKEN or live.get("type") != _TOKEN:
        return merged
    data = {**map_at(live, "data"), **map_at(merged, "data")}
    return {**merged, "data": data} if data else merged


def _service_account(merged: JsonObject, live: JsonObject, _: Keeping) -> JsonObject:
    return _keep(_keep(merged, live, "secrets"), live, "imagePullSecrets")


Rule = Callable[[JsonObject, JsonObject, Keeping], JsonObject]
_RULES: Final[Mapping[GroupKind, Rule]] = {
    **{GroupKind(group, "Deployment"): _deployment for group in _APPS},
    **{GroupKind(group, "StatefulSet"): _stateful_set for group in _APPS},
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("batch", "Job"): _job,
    GroupKind("batch", "CronJob"): _cron_job,
    GroupKind("apps", "ReplicaSet"): _scaled,
    GroupKind("", "PersistentVolume"): _volume,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "ReplicationController"): _scaled,
    GroupKind("", "Secret"): _secret,
    _SERVICE: _service,
    GroupKind("", "ServiceAccount"): _service_account,
}


def _pod_template(
    merged: JsonObject, live: JsonObject, path: tuple[str, ...], keeping: Keeping
) -> JsonObject:
    """Keep a requested restart, and CPU and memory if requested."""
    old = map_at(live, *path)
    restarted = annotations_of(old).get(_RESTARTED_AT)
    if restarted is not None and map_at(merged, *path):
        annotations = {**annotations_of(map_at(merged, *path)), _RESTARTED_AT: restarted}
        merged = _put(merged, (*path, "metadata", "annotations"), annotations)
    containers = map_at(merged, *path, "spec").get("containers")
    if not keeping.resources or not isinstance(containers, list):
        return merged
    before = {
        str(container.get("name")): container for container in maps_at(old, "spec", "containers")
    }
    kept = [_with_resources(container, before) for container in containers]
    return _put(merged, (*path, "spec", "containers"), kept)


def _with_resources(container: JsonValue, before: Mapping[str, JsonObject]) -> JsonValue:
    """Return the container with the CPU and memory of the live container of the same name."""
    if not isinstance(container, dict):
        return container
    live = before.get(str(container.get("name")), {})
    resources = {**map_at(container, "resources")}
    for field in ("requests", "limits"):
        present = map_at(live, "resources", field)
        adjusted = {name: present[name] for name in _ADJUSTED if name in present}
        if adjusted:
            resources[field] = {**map_at(resources, field), **adjusted}
    return {**container, "resources": resources} if resources else container


def _keep(merged: JsonObject, live: JsonObject, *path: str) -> JsonObject:
    """Return the object with the live value of a field, or without the field if it has none."""
    *parents, last = path
    kept, holder = map_at(live, *parents), map_at(merged, *parents)
    if last in kept:
        return _put(merged, path, kept[last])
    if last not in holder:
        return merged
    without = {name: value for name, value in holder.items() if name != last}
    return _put(merged, tuple(parents), without) if parents else without


def _put(obj: JsonObject, path: tuple[str, ...], value: object) -> JsonObject:
    """Return the object with a value at a path; the maps along the path are copied."""
    first, *rest = path
    below = obj.get(first)
    inner = _put(below if isinstance(below, dict) else {}, tuple(rest), value) if rest else value
    return {**obj, first: inner}
