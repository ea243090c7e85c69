"""The changes of extension resources that trigger a reconciliation; pure (spec 40 §2.2)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    map_at,
    uid_of,
)
from pergola.health.conditions import Reported, reported

SHOOT_CLASS: Final = "shoot"
TRIGGERS: Final = frozenset(
    {marks.OPERATION_RECONCILE, marks.OPERATION_MIGRATE, marks.OPERATION_RESTORE}
)


class Request(NamedTuple):
    """A caller's request: the operation annotation and the timestamp that identifies it."""

    operation: str
    timestamp: str

    @property
    def is_trigger(self) -> bool:
        """Whether the request triggers a run."""
        return self.operation in TRIGGERS


class Snapshot(NamedTuple):
    """The facts about an extension resource that determine whether a change triggers a run.

    Attributes:
        is_missed: whether the last request was removed but never started, because the process ended
            in between.
        status: a digest; equal statuses have equal digests.
        secret: the Secret in `spec.secretRef`; without a name if there is none.
        conditions: the conditions in the status, for metrics.
    """

    uid: str
    generation: int
    extension_class: str
    type: str
    request: Request
    is_deleting: bool
    has_succeeded: bool
    is_missed: bool
    status: int
    secret: Key
    conditions: Reported


def snapshot(obj: JsonObject) -> Snapshot:
    """Return the snapshot of an extension resource."""
    spec, status = map_at(obj, "spec"), map_at(obj, "status")
    return Snapshot(
        uid_of(obj),
        generation_of(obj),
        _text(spec.get("class")) or SHOOT_CLASS,
        _text(spec.get("type")),
        request_of(obj),
        deletion_timestamp_of(obj) is not None,
        map_at(status, "lastOperation").get("state") == "Succeeded",
        _is_missed(request_of(obj), _text(status.get("observedTimestamp"))),
        hash(orjson.dumps(status, option=orjson.OPT_SORT_KEYS)),
        secret_of(obj),
        reported(obj),
    )


def secret_of(obj: JsonObject) -> Key:
    """Return the key of the Secret in `spec.secretRef`; without a name if there is none."""
    reference = map_at(obj, "spec", "secretRef")
    return Key(_text(reference.get("namespace")), _text(reference.get("name")))


def request_of(obj: JsonObject) -> Request:
    """Return the request on an extension resource."""
    annotations = annotations_of(obj)
    return Request(_text(annotations.get(marks.OPERATION)), _text(annotations.get(marks.TIMESTAMP)))


@dataclass(frozen=True, slots=True)
class Predicate:
    """The predicate of one controller; it always checks the type and the class.

    Attributes:
        classes: the extension classes; `shoot` if empty.
        ignores_annotation: trigger on each new generation (mode B) instead of the operation
            annotation (mode A).
    """

    type: str
    classes: Collection[str] = ()
    ignores_annotation: bool = False

    def is_responsible(self, seen: Snapshot) -> bool:
        """Return whether the controller handles this type and class."""
        classes = self.classes or (SHOOT_CLASS,)
        return seen.type == self.type and seen.extension_class in classes

    def appeared(self, seen: Snapshot) -> bool:
        """Return whether a resource that was created, or found at the start, triggers a run."""
        if not self.is_responsible(seen):
            return False
        return self.ignores_annotation or needs_run(seen)

    def changed(self, old: Snapshot, new: Snapshot) -> bool:
        """Return whether a change of a resource triggers a run.

        The controller's own writes do not: they change neither the request nor the generation, and,
        during a deletion, only the status.
        """
        if old.uid != new.uid:
            return self.appeared(new)
        if not self.is_responsible(new):
            return False
        if self.ignores_annotation:
            return old.generation != new.generation
        if new.request.is_trigger and (
            old.request != new.request or old.generation != new.generation
        ):
            return True
        return new.is_deleting and (not old.is_deleting or old.status == new.status)


def needs_run(seen: Snapshot) -> bool:
    """Return whether a request is pending or unfinished, as a restart would find it."""
    return seen.request.is_trigger or seen.is_deleting or not seen.has_succeeded or seen.is_missed


def _is_missed(request: Request, observed: str) -> bool:
    """Return whether the status belongs to another request; old extensions do not record it."""
    differs = bool(observed and request.timestamp) and observed != request.timestamp
    return differs and request.operation != marks.OPERATION_WAIT_FOR_STATE


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
