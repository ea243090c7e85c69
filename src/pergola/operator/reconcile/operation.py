"""The start and success of an operation: pure functions of a Garden (spec 20 §9)."""

from datetime import datetime

from pergola.api import marks
from pergola.api.objects import JsonObject, annotations_of, resource_version_of
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.operations import OPERATIONS, annotation_of, operations_in
from pergola.operator.rotation import phases


def requested_by(garden: JsonObject) -> list[str]:
    """Return the operations in the annotation of a Garden."""
    return operations_in(annotations_of(garden).get(marks.OPERATION, ""))


def beginning(garden: Garden, requested: list[str], now: datetime) -> JsonObject:
    """Return the status changes at the start of an operation, as a merge patch."""
    changes: JsonObject = {"advertisedAddresses": _addresses(garden)}
    return changes | _rotation(phases.begun(garden, requested, now))


def success(garden: Garden, now: datetime) -> JsonObject:
    """Return the status changes after a successful reconciliation, as a merge patch."""
    return _rotation(phases.succeeded(garden, now))


def remaining(garden: JsonObject) -> JsonObject | None:
    """Return the merge patch that removes handled operations from a Garden; None if there are none.

    Unknown operations stay: they may be meant for a newer operator. The patch fails if the Garden
    has changed: another request may have replaced the handled one.
    """
    requested = requested_by(garden)
    if not any(each in OPERATIONS for each in requested):
        return None
    left = [each for each in requested if each not in OPERATIONS]
    metadata = {
        "annotations": {marks.OPERATION: annotation_of(left) or None},
        "resourceVersion": resource_version_of(garden),
    }
    return {"metadata": metadata}


def _addresses(garden: Garden) -> list[JsonObject]:
    domains = garden.spec.virtual_cluster.dns.domains
    return [{"name": "virtual-garden", "url": f"https://api.{domains[0].name}"}] if domains else []


def _rotation(patch: JsonObject) -> JsonObject:
    return {"credentials": {"rotation": patch}} if patch else {}
