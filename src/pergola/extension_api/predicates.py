"""Which changes of extension resources start a reconciliation (spec 40 §2.2); all pure."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    map_at,
    uid_of,
)

SHOOT_CLASS: Final = "shoot"
TRIGGERS: Final = frozenset(
    {marks.OPERATION_RECONCILE, marks.OPERATION_MIGRATE, marks.OPERATION_RESTORE}
)


class Request(NamedTuple):
    """What a caller asks for: both annotations tell one request from the next."""

    operation: str
    timestamp: str

    @property
    def is_trigger(self) -> bool:
        """Whether it asks for something to be done now."""
        return self.operation in TRIGGERS


class Seen(NamedTuple):
    """What is kept of an extension resource to tell whether a change of it matters.

    Attributes:
        is_missed: whether its last request was taken off, but nothing was begun: the process ended
            between the two.
        status: a digest, which is the same for the same status.
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


def look(obj: JsonObject) -> Seen:
    """What there is to keep of an extension resource."""
    spec, status = map_at(obj, "spec"), map_at(obj, "status")
    return Seen(
        uid_of(obj),
        generation_of(obj),
        _text(spec.get("class")) or SHOOT_CLASS,
        _text(spec.get("type")),
        request_of(obj),
        deletion_timestamp_of(obj) is not None,
        map_at(status, "lastOperation").get("state") == "Succeeded",
        _is_missed(request_of(obj), _text(status.get("observedTimestamp"))),
        hash(orjson.dumps(status, option=orjson.OPT_SORT_KEYS)),
    )


def request_of(obj: JsonObject) -> Request:
    """The request that an extension resource carries."""
    annotations = annotations_of(obj)
    return Request(_text(annotations.get(marks.OPERATION)), _text(annotations.get(marks.TIMESTAMP)))


@dataclass(frozen=True, slots=True)
class Predicate:
    """Decides for one controller; its type and classes cannot be left out.

    Attributes:
        classes: of the resources; `shoot` if there are none.
        ignores_annotation: whether each new generation is worked on (mode B) instead of what the
            operation annotation asks for (mode A).
    """

    type: str
    classes: Collection[str] = ()
    ignores_annotation: bool = False

    def is_responsible(self, seen: Seen) -> bool:
        """Whether the type and the class are the controller's."""
        classes = self.classes or (SHOOT_CLASS,)
        return seen.type == self.type and seen.extension_class in classes

    def appeared(self, seen: Seen) -> bool:
        """Whether a resource wants work that was just created, or found at the start."""
        if not self.is_responsible(seen):
            return False
        return self.ignores_annotation or wants_work(seen)

    def changed(self, old: Seen, new: Seen) -> bool:
        """Whether a change of a resource is one that wants work.

        What the controller writes itself is none: it neither makes a request nor a generation,
        and while a resource is deleted it changes the status.
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


def wants_work(seen: Seen) -> bool:
    """Whether something was asked for or is unfinished: what a restart would take up."""
    return seen.request.is_trigger or seen.is_deleting or not seen.has_succeeded or seen.is_missed


def _is_missed(request: Request, observed: str) -> bool:
    """Whether the status belongs to another request; old extensions do not tell to which."""
    told = bool(observed and request.timestamp) and observed != request.timestamp
    return told and request.operation != marks.OPERATION_WAIT_FOR_STATE


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
