"""Required and optional conditions of live objects."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pergola.api.conditions import FALSE, TRUE, get_condition
from pergola.api.objects import JsonObject, maps_at
from pergola.health.times import read_time


class Requirement(NamedTuple):
    """A condition that must have a status, or may be absent if `optional`."""

    type: str
    status: str = "True"
    optional: bool = False


class Reported(NamedTuple):
    """The number of conditions of an object, and the types of those that fail."""

    total: int
    failing: tuple[str, ...]


NOTHING: Final = Reported(0, ())
"""For an object without conditions, or one that another process reports."""


class Unmet(NamedTuple):
    """A requirement that an object does not meet; `found` is None if the condition is missing."""

    requirement: Requirement
    found: JsonObject | None


INFORMATIVE: Final = frozenset({"Paused", "Required", "RequiredRuntime", "RequiredVirtual"})
"""Types of conditions that state a fact: neither value is a problem."""
_ROLLOUT: Final = "Progressing"
"""Conditions whose type ends with this are good if they are False."""


def desired_status(kind: str) -> str | None:
    """Return the status that a condition should have; None if either value is fine."""
    if kind in INFORMATIVE:
        return None
    return FALSE if kind.endswith(_ROLLOUT) else TRUE


def failing(obj: JsonObject) -> Iterator[JsonObject]:
    """Yield the conditions of an object that are not as they should be."""
    for each in maps_at(obj, "status", "conditions"):
        desired = desired_status(str(each.get("type") or ""))
        if desired is not None and each.get("status") != desired:
            yield each


def reported(obj: JsonObject) -> Reported:
    """Return the conditions in the status of an object."""
    kinds = dict.fromkeys(str(each.get("type") or "") for each in failing(obj))
    return Reported(len(maps_at(obj, "status", "conditions")), tuple(kinds))


def failing_since(found: JsonObject) -> datetime | None:
    """Return when a condition began to fail.

    The last transition is later if every retry sets another status; its update is that of the
    reason or message.
    """
    times = (read_time(found.get(name)) for name in ("lastTransitionTime", "lastUpdateTime"))
    return min((time for time in times if time is not None), default=None)


def began(found: JsonObject) -> datetime | None:
    """Return when a condition got its status; one that fails keeps its time while it is retried."""
    if found.get("status") == FALSE:
        return failing_since(found)
    return read_time(found.get("lastTransitionTime"))


def conditions_problem(obj: JsonObject, desired: Sequence[Requirement]) -> str | None:
    """Return the first condition that makes an object unhealthy, as text, or None."""
    return next(_problems(obj, desired), None)


def requires(*desired: Requirement) -> Callable[[JsonObject], str | None]:
    """Return the rule of a kind whose health depends only on its conditions."""

    def problem(obj: JsonObject) -> str | None:
        return conditions_problem(obj, desired)

    return problem


def condition(obj: JsonObject, kind: str) -> JsonObject | None:
    """Return the status condition of a type."""
    return get_condition(maps_at(obj, "status", "conditions"), kind)


def has_status(obj: JsonObject, kind: str, *statuses: str) -> bool:
    """Return whether the condition of a type exists and has one of the statuses."""
    found = condition(obj, kind)
    return found is not None and found.get("status") in statuses


def describe(found: JsonObject) -> str:
    """Format the type, status, reason and message of a condition for a failure text."""
    reason, message = found.get("reason") or "no reason", found.get("message")
    text = f"condition {found.get('type')} is {found.get('status')} ({reason})"
    return f"{text}: {message}" if message else text


def unmet(obj: JsonObject, desired: Sequence[Requirement]) -> Iterator[Unmet]:
    """Yield the requirements that an object does not meet."""
    for requirement in desired:
        found = condition(obj, requirement.type)
        if found is None:
            if not requirement.optional:
                yield Unmet(requirement, None)
        elif found.get("status") != requirement.status:
            yield Unmet(requirement, found)


def _problems(obj: JsonObject, desired: Sequence[Requirement]) -> Iterator[str]:
    for (kind, status, _), found in unmet(obj, desired):
        if found is None:
            yield f"condition {kind} is missing, expected {status}"
        else:
            yield f"expected condition {kind} to be {status}, but {describe(found)}"
