"""The requests in a Garden, and the changes that require a reconciliation (spec 20 §8)."""

from typing import NamedTuple

from pergola.api.objects import JsonObject, deletion_timestamp_of, generation_of
from pergola.api.operator_v1alpha1.operations import OPERATIONS
from pergola.operator.reconcile.operation import requested_by
from pergola.operator.reconcile.reconcile import is_ignored
from pergola.runtime.caching.cache import Change


class Request(NamedTuple):
    """The parts of a Garden whose changes require a reconciliation."""

    generation: int
    operations: frozenset[str]
    is_deleted: bool
    is_ignored: bool


def request_in(garden: JsonObject) -> Request:
    """Return the requests in a Garden; labels, other annotations and the status do not matter."""
    return Request(
        generation_of(garden),
        OPERATIONS.intersection(requested_by(garden)),
        deletion_timestamp_of(garden) is not None,
        is_ignored(garden),
    )


def matters(change: Change[Request]) -> bool:
    """Return whether an event requires a reconciliation.

    These events are the appearance of a Garden, a new generation, a deletion, another set of
    requested operations, and the end of a pause.
    """
    old, new = change.old, change.new
    if new is None or new.is_ignored:
        return False
    if old is None or old._replace(operations=new.operations) != new:
        return True
    return bool(new.operations) and new.operations != old.operations
