"""The problems of a ManagedResource: its conditions, Secrets, objects and deletion."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from pergola.api import marks
from pergola.api.conditions import get_condition
from pergola.api.kinds import SECRET
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.managed_resource_status import (
    applied_problem,
    deletion_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import (
    Identity,
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    maps_at,
)
from pergola.api.texts import abridged
from pergola.health import has_rule
from pergola.health.conditions import describe, failing, failing_since
from pergola.health.since import since
from pergola.resource_manager.controllers.managed_resource.opponents import remarks_in
from pergola.resource_manager.controllers.managed_resource.references import (
    reference_key,
    reference_kind,
)
from pergola.why.answer import Statement, Topic
from pergola.why.health import unhealthy
from pergola.why.manifests import Content
from pergola.why.reading import Reader

_SHOWN: Final = 3
_REFUSED: Final = " is invalid: "
"""How the API server begins its reasons against the content of an object."""
_PREFIX: Final = "Could not clean all old resources: "
_ONE: Final = "1 error occurred: "
_SEVERAL: Final = re.compile("^([0-9]+) errors occurred: ")


def conditions(resource: JsonObject) -> Iterator[Statement]:
    """Yield the conditions that are not as they should be.

    While it is deleted, its objects are expected to go; `deletion` yields what holds them.
    """
    if deletion_timestamp_of(resource) is not None:
        for each in failing(resource):
            if each.get("type") == APPLIED and deletion_problem(resource) is None:
                yield Statement(topic=Topic.PROBLEM, text=describe(each), since=failing_since(each))
        return
    for kind, rule in _RULES.items():
        problem = rule(resource)
        # A ManagedResource that was never applied has no other conditions yet.
        if problem is not None and (rule is applied_problem or _has(resource, kind)):
            is_rollout = rule is progressing_problem
            yield Statement(
                topic=Topic.WAITS if is_rollout else Topic.PROBLEM,
                text=f"its rollout: {problem}" if is_rollout else problem,
                since=since(resource, problem),
                advice=_correction(resource) if rule is applied_problem else "",
            )


def _correction(resource: JsonObject) -> str:
    """Return what to do about an object that the API server refuses; empty if nothing is known."""
    applied = get_condition(maps_at(resource, "status", "conditions"), APPLIED) or {}
    is_refused = applied.get("reason") == Reason.APPLY_FAILED
    if not is_refused or _REFUSED not in str(applied.get("message")):
        return ""
    names = [str(each.get("name") or "") for each in maps_at(resource, "spec", "secretRefs")]
    shown = abridged([*filter(None, names)], _SHOWN)
    return f"correct the object in Secret {shown}: a change is applied at once"


def remarks(resource: JsonObject) -> Iterator[Statement]:
    """Yield the objects that others keep changing or that several ManagedResources describe."""
    for remark in applied_remarks(resource):
        yield Statement(topic=Topic.PROBLEM, text=remark)


def applied_remarks(resource: JsonObject) -> list[str]:
    """Return the remarks about objects in the message of the Applied condition."""
    found = get_condition(maps_at(resource, "status", "conditions"), APPLIED) or {}
    if found.get("status") != "True":
        return []  # the message is shown as a problem
    return remarks_in(str(found.get("message") or ""))


_RULES: Final = {
    APPLIED: applied_problem,
    HEALTHY: healthy_problem,
    PROGRESSING: progressing_problem,
}


def _has(resource: JsonObject, kind: str) -> bool:
    return get_condition(maps_at(resource, "status", "conditions"), kind) is not None


def lost_secrets(content: Content) -> Iterator[Statement]:
    """Yield the missing Secrets."""
    for key in content.lost:
        yield Statement(
            topic=Topic.PROBLEM,
            subject=f"Secret {key}",
            text="does not exist, so nothing is applied or deleted",
            advice=f"create {SECRET.kind} {key}, or remove it from spec.secretRefs",
        )


async def unhealthy_objects(resource: JsonObject, reader: Reader) -> AsyncIterator[Statement]:
    """Yield the unhealthy objects; those in another cluster are not read."""
    left = _SHOWN
    if healthy_problem(resource) is None and progressing_problem(resource) is None:
        return
    for reference in maps_at(resource, "status", "resources"):
        gvk, key = reference_kind(reference), reference_key(reference)
        if not left or not has_rule(gvk):
            continue
        obj = await reader.find(gvk, key, metadata_only=True)
        if obj is None or marks.ORIGIN not in annotations_of(obj):
            continue
        found = await unhealthy(Identity(gvk, key), reader)
        if found is not None:
            left -= 1
            yield found


def deletion(resource: JsonObject) -> Iterator[Statement]:
    """Yield what the objects of a deleted ManagedResource wait for."""
    if deletion_timestamp_of(resource) is None:
        return
    problem = deletion_problem(resource)
    if problem:
        text = _SEVERAL.sub(r"\1 objects: ", problem.removeprefix(_PREFIX).removeprefix(_ONE))
        yield Statement(
            topic=Topic.BLOCKED,
            text=text,
            since=since(resource, problem),
            advice="ask the same about an object that is still there: pergola why KIND/NAME",
        )
    if map_at(resource, "spec").get("keepObjects"):
        because = "spec.keepObjects is set"
        yield Statement(topic=Topic.DECIDED, text="its objects stay", because=because)
