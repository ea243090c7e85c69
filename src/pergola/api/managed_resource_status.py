"""Checks of a ManagedResource's conditions, for clients that wait for it (spec 10 §7).

Each check returns None if it passes, and otherwise a sentence that says why not. It fails if the
condition is missing or describes an earlier generation.
"""

from pergola.api.conditions import FALSE, TRUE, get_condition
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.objects import JsonObject, generation_of, map_at, maps_at

_DELETION_REASONS = frozenset({Reason.DELETION_PENDING, Reason.DELETION_FAILED})


def applied_problem(resource: JsonObject) -> str | None:
    """Return why the current generation does not count as applied."""
    observed, generation = _observed_generation(resource), generation_of(resource)
    if observed == generation:
        return _condition_problem(resource, APPLIED, TRUE)
    text = f"generation {generation} was not applied yet; the last one was {observed}"
    # A run that fails does not raise the observed generation, but says why.
    if get_condition(maps_at(resource, "status", "conditions"), APPLIED) is None:
        return text
    problem = _condition_problem(resource, APPLIED, TRUE)
    return f"{text}; {problem}" if problem else text


def healthy_problem(resource: JsonObject) -> str | None:
    """Return why the objects do not count as healthy."""
    return _condition_problem(resource, HEALTHY, TRUE)


def progressing_problem(resource: JsonObject) -> str | None:
    """Return why the objects do not count as rolled out."""
    return _condition_problem(resource, PROGRESSING, FALSE)


def problems_of(resource: JsonObject) -> list[str]:
    """Return why a ManagedResource is not applied, healthy or rolled out.

    Missing conditions of one that was never applied are omitted.
    """
    applied = applied_problem(resource)
    found = [] if applied is None else [applied]
    for kind, rule in ((HEALTHY, healthy_problem), (PROGRESSING, progressing_problem)):
        problem = rule(resource)
        exists = get_condition(maps_at(resource, "status", "conditions"), kind) is not None
        if problem is not None and (exists or applied is None):
            found.append(problem)
    return found


def deletion_problem(resource: JsonObject) -> str | None:
    """Return what blocks a deletion according to the Applied condition, or None."""
    condition = get_condition(maps_at(resource, "status", "conditions"), APPLIED) or {}
    if condition.get("reason") not in _DELETION_REASONS:
        return None
    return condition.get("message") or condition.get("reason")


def _condition_problem(resource: JsonObject, kind: str, desired: str) -> str | None:
    condition = get_condition(maps_at(resource, "status", "conditions"), kind)
    if condition is None:
        return f"condition {kind} is missing"
    status = condition.get("status")
    if status == desired:
        return None
    reason, message = condition.get("reason") or "no reason", condition.get("message")
    return f"condition {kind} is {status} ({reason})" + (f": {message}" if message else "")


def _observed_generation(resource: JsonObject) -> int:
    observed = map_at(resource, "status").get("observedGeneration")
    return observed if isinstance(observed, int) else 0
