"""The next operation of an extension resource, determined by its state alone (spec 40 §2.3)."""

from enum import StrEnum
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
)
from pergola.extension_api.predicates import Request, request_of


class Operation(StrEnum):
    """The types of `status.lastOperation` that an extension writes."""

    CREATE = "Create"
    RECONCILE = "Reconcile"
    DELETE = "Delete"
    MIGRATE = "Migrate"
    RESTORE = "Restore"


class Verb(NamedTuple):
    """The words for an operation in sentences."""

    doing: str
    done: str


VERBS: Final = {
    Operation.CREATE: Verb("reconciling", "reconciled"),
    Operation.RECONCILE: Verb("reconciling", "reconciled"),
    Operation.DELETE: Verb("deleting", "deleted"),
    Operation.MIGRATE: Verb("migrating", "migrated"),
    Operation.RESTORE: Verb("restoring", "restored"),
}

PROTECTED: Final = (Operation.CREATE, Operation.RECONCILE, Operation.RESTORE)
"""The operations after which the extension has something to delete."""
_REPEATED: Final = (Operation.CREATE, Operation.MIGRATE, Operation.RESTORE)


def waits_for_state(obj: JsonObject) -> bool:
    """Return whether the caller still has to write the state; until then, write nothing."""
    return annotations_of(obj).get(marks.OPERATION) == marks.OPERATION_WAIT_FOR_STATE


def operation_of(obj: JsonObject) -> Operation:
    """Return the type of the operation; one that has never succeeded keeps its type."""
    requested = annotations_of(obj).get(marks.OPERATION)
    last = map_at(obj, "status", "lastOperation")
    if requested == marks.OPERATION_MIGRATE:
        return Operation.MIGRATE
    if deletion_timestamp_of(obj) is not None:
        return Operation.DELETE
    if requested == marks.OPERATION_RESTORE:
        return Operation.RESTORE
    if not last:
        return Operation.CREATE
    if last.get("type") in _REPEATED and last.get("state") != "Succeeded":
        return Operation(last["type"])
    return Operation.RECONCILE


def next_operation(obj: JsonObject, finalizer: str) -> Operation | None:
    """Return the next operation; None if there is nothing to do.

    Nothing is done for a resource that was migrated to another seed, not even deleting it, nor for
    a resource under deletion that the extension never touched.
    """
    operation = operation_of(obj)
    if is_migrated(obj) and operation not in (Operation.MIGRATE, Operation.RESTORE):
        return None
    if operation is Operation.DELETE and finalizer not in finalizers_of(obj):
        return None
    return operation


def is_migrated(obj: JsonObject) -> bool:
    """Return whether the resource was migrated away from this seed."""
    last = map_at(obj, "status", "lastOperation")
    return last.get("type") == Operation.MIGRATE and last.get("state") == "Succeeded"


def acceptance(obj: JsonObject, operation: Operation | None, finalizer: str) -> JsonObject:
    """Return the patch of `metadata` before the work begins; empty if nothing changes.

    One write removes a request to reconcile and adds the finalizer. Requests to migrate and to
    restore remain until the operation is done, so that it is resumed after a crash.
    """
    metadata: JsonObject = {}
    if annotations_of(obj).get(marks.OPERATION) == marks.OPERATION_RECONCILE:
        metadata["annotations"] = {marks.OPERATION: None}
    present = finalizers_of(obj)
    if operation in PROTECTED and finalizer not in present:
        metadata["finalizers"] = [*present, finalizer]
    return metadata


def completion(
    obj: JsonObject, operation: Operation, finalizer: str, request: Request
) -> JsonObject:
    """Return the patch of `metadata` after an operation succeeded; empty if nothing changes.

    Args:
        obj: in its current state.
        request: the request that was processed; a newer one remains.
    """
    metadata: JsonObject = {}
    finalizers = finalizers_of(obj)
    if operation is Operation.MIGRATE and finalizers:
        metadata["finalizers"] = []
    if operation is Operation.DELETE and finalizer in finalizers:
        metadata["finalizers"] = [name for name in finalizers if name != finalizer]
    if (
        operation in (Operation.MIGRATE, Operation.RESTORE)
        and request.operation
        and request_of(obj) == request
    ):
        metadata["annotations"] = {marks.OPERATION: None}
    return metadata
