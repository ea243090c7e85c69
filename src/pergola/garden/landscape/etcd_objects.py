"""`Etcd` objects as written and awaited (spec 20 §15.1).

etcd-druid reconciles an Etcd only upon request, by an annotation. So each change includes the
request, and nothing else does.
"""

from datetime import datetime
from typing import Any, Final

from pergola.api.conditions import TRUE, get_condition
from pergola.api.marks import OPERATION, OPERATION_RECONCILE, TIMESTAMP
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.extension_api.caller import timestamp_of
from pergola.kube.patches import apply_merge_patch

ETCD: Final = GroupVersionKind("druid.gardener.cloud", "v1alpha1", "Etcd")

_UPDATED: Final = "AllMembersUpdated"
_KEPT: Final = (
    ("storageCapacity",),
    ("etcd", "defragmentationSchedule"),
    ("backup", "fullSnapshotSchedule"),
)
_DAY: Final = 2


def kept(desired: JsonObject, live: JsonObject | None) -> JsonObject:
    """Return an Etcd with the fields of an existing one: its capacity, schedules and request.

    Only the schedule of a main etcd that is defragmented every few days is replaced.
    """
    if live is None:
        return desired
    spec: JsonObject = {}
    for path in _KEPT:
        value = _at(live, path)
        if value is not None and _at(desired, path) is not None:
            _put(spec, path, value)
    if _is_rarely_defragmented(live):
        spec.pop("etcd", None)
    marks = {name: annotations_of(live).get(name) for name in (OPERATION, TIMESTAMP)}
    metadata = {"annotations": {name: mark for name, mark in marks.items() if mark is not None}}
    return apply_merge_patch(desired, {"metadata": metadata, "spec": spec})


def requested(desired: JsonObject, now: datetime) -> JsonObject:
    """Return an Etcd with the request to reconcile it."""
    annotations = {OPERATION: OPERATION_RECONCILE, TIMESTAMP: timestamp_of(now)}
    return apply_merge_patch(desired, {"metadata": {"annotations": annotations}})


def problem(etcd: JsonObject | None) -> str | None:
    """Return why an Etcd is not reconciled or not ready, or None.

    druid removes the request after carrying it out. Errors that remain in its status then are
    obsolete: it failed to clear them.
    """
    if etcd is None:
        return "it does not exist"
    if deletion_timestamp_of(etcd) is not None:
        return "it is being deleted"
    observed = map_at(etcd, "status").get("observedGeneration") or 0
    if OPERATION in annotations_of(etcd) or observed != generation_of(etcd):
        errors = [str(each.get("description")) for each in maps_at(etcd, "status", "lastErrors")]
        return "; ".join(errors) or "etcd-druid has not carried out the request to reconcile it"
    is_ready = map_at(etcd, "status").get("ready") is True
    return _members_problem(etcd) or (None if is_ready else "it is not ready")


def _members_problem(etcd: JsonObject) -> str | None:
    updated = get_condition(maps_at(etcd, "status", "conditions"), _UPDATED)
    if updated is None:
        return f"condition {_UPDATED} is missing"
    if updated.get("status") == TRUE:
        return None
    return f"not all members are updated: {updated.get('message') or updated.get('reason')}"


def _at(obj: JsonObject, path: tuple[str, ...]) -> Any:
    return map_at(obj, "spec", *path[:-1]).get(path[-1])


def _put(spec: JsonObject, path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        spec = spec.setdefault(name, {})
    spec[path[-1]] = value


def _is_rarely_defragmented(etcd: JsonObject) -> bool:
    """Return whether a main etcd is defragmented only every few days, the former default."""
    schedule = str(map_at(etcd, "spec", "etcd").get("defragmentationSchedule", "")).split()
    is_main = labels_of(etcd).get("role") == "main"
    return is_main and len(schedule) > _DAY and schedule[_DAY].startswith("*/")
