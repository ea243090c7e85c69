"""Whether an object needs attention, since when and why; pure functions of the live object."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pergola.api import marks
from pergola.api.cluster_api import PAUSED
from pergola.api.conditions import FALSE, INITIALIZED, TRUE, UNKNOWN
from pergola.api.managed_resource_status import deletion_problem
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    map_at,
    maps_at,
    metadata_of,
)
from pergola.extension_api.kinds import GROUP as EXTENSIONS
from pergola.health import check_extension
from pergola.health.conditions import desired_status
from pergola.health.times import read_time

_RUNNING: Final = ("Pending", "Processing")
_BROKEN: Final = ("Error", "Failed", "Aborted")


class State(StrEnum):
    """The state of an object, from best to worst."""

    HEALTHY = "healthy"
    IGNORED = "ignored"
    PROGRESSING = "progressing"
    DELETING = "deleting"
    TROUBLE = "trouble"


PATIENCE: Final = {
    State.HEALTHY: 0,
    State.IGNORED: 0,
    State.PROGRESSING: 300,
    State.DELETING: 60,
    State.TROUBLE: 0,
}
"""The seconds that a state may last before it needs attention."""
BAD: Final = (State.TROUBLE, State.DELETING, State.PROGRESSING)
"""The states that need attention if they last."""
_ORDER: Final = tuple(State)
_SOON: Final = 60
_LONG: Final = 1800


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of an object.

    Attributes:
        since: When the state began (RFC 3339); empty if the object does not record it.
        patience: The seconds that the state may last before it needs attention.
    """

    state: State = State.HEALTHY
    problem: str = ""
    since: str = ""
    patience: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as the page shows it."""

    kind: str
    status: str
    state: State
    since: str
    reason: str
    message: str


def verdict(gvk: GroupVersionKind, obj: JsonObject) -> Verdict:
    """Return the worst state that an object reports."""
    deleted = deletion_timestamp_of(obj)
    if deleted is not None:
        return _of(State.DELETING, deletion(obj), deleted)
    ignored = _ignored(obj)
    if ignored:
        return _of(State.IGNORED, f"annotation {ignored} stops its reconciliation")
    found = [_of_condition(each) for each in conditions(obj)]
    found += _operation(gvk, obj)
    if not any(each.state is State.TROUBLE for each in found):
        found += _outdated(obj)
    # Among several problems of equal severity, the oldest is likely to be the cause.
    worst = max((each.state for each in found), key=_ORDER.index, default=State.HEALTHY)
    return min((each for each in found if each.state is worst), key=_since, default=Verdict())


def conditions(obj: JsonObject) -> list[Condition]:
    """Return the conditions of an object, each with the state that it represents."""
    return [
        Condition(
            kind=str(each.get("type") or ""),
            status=str(each.get("status") or ""),
            state=_condition_state(str(each.get("type") or ""), str(each.get("status") or "")),
            since=_began(each),
            reason=str(each.get("reason") or ""),
            message=str(each.get("message") or ""),
        )
        for each in maps_at(obj, "status", "conditions")
    ]


def _began(condition: JsonObject) -> str:
    """Return when a condition began: one that fails keeps its time while it is retried."""
    times = [condition.get("lastTransitionTime")]
    if condition.get("status") == FALSE:
        times.append(condition.get("lastUpdateTime"))
    known = [str(time) for time in times if read_time(time) is not None]
    return min(known, default="")


def _condition_state(kind: str, status: str) -> State:
    desired = desired_status(kind)
    if desired in (None, status):
        return State.HEALTHY
    if desired == FALSE:
        return State.PROGRESSING
    return {TRUE: State.HEALTHY, FALSE: State.TROUBLE}.get(status, State.PROGRESSING)


def _of_condition(condition: Condition) -> Verdict:
    if condition.state is State.HEALTHY:
        return Verdict(since=condition.since)
    problem = f"{condition.kind} is {condition.status}"
    if condition.message and condition.reason != INITIALIZED:
        problem = condition.message
    elif condition.reason:
        problem += f" ({condition.reason})"
    patience = _SOON if condition.status == UNKNOWN else PATIENCE[condition.state]
    return Verdict(condition.state, problem, condition.since, patience)


def _operation(gvk: GroupVersionKind, obj: JsonObject) -> Iterator[Verdict]:
    """Yield the state of the last operation, for Gardens and extension resources."""
    last = map_at(obj, "status", "lastOperation")
    state, since = str(last.get("state") or ""), str(last.get("lastUpdateTime") or "")
    if state in _BROKEN:
        yield _of(State.TROUBLE, f"{last.get('type')} is {state}: {_errors(obj, last)}", since)
    elif state in _RUNNING:
        said = f"{last.get('type')} is at {last.get('progress', 0)} %: {last.get('description')}"
        yield Verdict(State.PROGRESSING, said, "", _LONG)
    elif gvk.group == EXTENSIONS and (failure := check_extension(obj)):
        yield Verdict(State.PROGRESSING, failure.text, "", _SOON)


def _errors(obj: JsonObject, last: JsonObject) -> str:
    errors = [str(each.get("description") or "") for each in maps_at(obj, "status", "lastErrors")]
    own = str(map_at(obj, "status", "lastError").get("description") or "")
    return "; ".join(filter(None, [*errors, own])) or str(last.get("description") or "no reason")


def _outdated(obj: JsonObject) -> Iterator[Verdict]:
    """Yield a problem if no controller has observed an object's current generation."""
    status, generation = map_at(obj, "status"), generation_of(obj)
    observed = status.get("observedGeneration")
    if generation and isinstance(observed, int) and observed < generation:
        text = f"generation {generation} was not reconciled yet; the last one was {observed}"
        yield Verdict(State.PROGRESSING, text, "", _SOON)
    elif not status:
        created = str(metadata_of(obj).get("creationTimestamp") or "")
        text = "no controller has reported a status: check that the responsible one runs"
        yield Verdict(State.PROGRESSING, text, created, _SOON)


def deletion(obj: JsonObject) -> str:
    """Return what an object that is being deleted waits for."""
    blocked = deletion_problem(obj)
    finalizers = ", ".join(finalizers_of(obj))
    waits = f"it waits for the finalizers {finalizers}" if finalizers else "it is being deleted"
    return f"{blocked} ({waits})" if blocked else waits


def _ignored(obj: JsonObject) -> str:
    annotations = annotations_of(obj)
    for mark in (marks.IGNORE, marks.OPERATOR_IGNORE):
        if marks.is_truthy(annotations.get(mark)):
            return mark
    return PAUSED if PAUSED in annotations else ""


def _of(state: State, problem: str, since: str = "") -> Verdict:
    return Verdict(state, problem, since, PATIENCE[state])


def _since(each: Verdict) -> str:
    return each.since or "~"  # sorts after every time
