"""The state of single components, by the condition that reports on them (spec 21 §3.2); pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING
from pergola.api.marks import CARE_CONDITION_TYPE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
)
from pergola.garden.components.managed_resources import Expected
from pergola.health import CareFailure, care
from pergola.health.managed_resources import MISSING_CONDITION, OUTDATED_STATUS

MISSING: Final = "ManagedResourceMissing"
_CONDITIONS: Final = (APPLIED, HEALTHY, PROGRESSING)
_NAMED: Final = frozenset({OUTDATED_STATUS, MISSING_CONDITION})
_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)
_SHOWN: Final = 10

Signal = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class SeenResource:
    """A ManagedResource.

    Attributes:
        label: The condition that it names; empty if it names none.
        has_class: Whether its objects are in the runtime cluster.
        failure: Its problem, if any.
        signal: The content of its conditions; a change triggers a run.
    """

    label: str
    has_class: bool
    failure: CareFailure | None
    signal: Signal

    @classmethod
    def of(cls, resource: JsonObject) -> "SeenResource":
        """Return these facts about an object."""
        return cls(
            labels_of(resource).get(CARE_CONDITION_TYPE, ""),
            bool(map_at(resource, "spec").get("class")),
            _named(Key.of(resource), care(resource, now=_ANY_TIME)),
            signal_of(resource, *_CONDITIONS),
        )


class Item(NamedTuple):
    """A ManagedResource, and its problem if it has one."""

    key: Key
    failure: CareFailure | None


def items_of(
    condition: str,
    resources: Mapping[Key, SeenResource],
    expected: Iterable[Expected],
    *,
    once: bool = False,
) -> list[Item]:
    """Return the ManagedResources that a condition covers, sorted, including missing ones.

    Args:
        once: Whether a ManagedResource without a class counts only for the condition that it names.
            Otherwise it also counts for the virtual components.
    """
    counts = _counts_once if once else _counts
    found = {key: seen.failure for key, seen in resources.items() if counts(condition, seen)}
    for each in expected:
        if each.condition == condition and each.key not in resources:
            found[each.key] = CareFailure(MISSING, f"ManagedResource {each.key} does not exist")
    return [Item(key, failure) for key, failure in sorted(found.items())]


def failure_of(items: Sequence[Item], previous: str) -> CareFailure | None:
    """Return the failures of all items as one, or None.

    Args:
        previous: The condition's current reason. It is kept as long as an item fails for it, so
            that additional failures do not look like a different one.
    """
    failures = [item.failure for item in items if item.failure is not None]
    if not failures:
        return None
    reasons = [failure.reason for failure in failures]
    reason = previous if previous in reasons else reasons[0]
    return CareFailure(reason, bounded([failure.message for failure in failures]))


def bounded(texts: Sequence[str]) -> str:
    """Join texts: the first ten, and the number of the others."""
    more = len(texts) - _SHOWN
    shown = "; ".join(text.rstrip(".") for text in texts[:_SHOWN]) if len(texts) > 1 else texts[0]
    return f"{shown}; and {more} more" if more > 0 else shown


def signal_of(obj: JsonObject, *types: str) -> Signal:
    """Return status, reason and message of some conditions."""
    return tuple(_content(obj, types))


def _content(obj: JsonObject, types: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for condition in maps_at(obj, "status", "conditions"):
        if condition.get("type") in types:
            yield tuple(condition.get(name) for name in ("type", "status", "reason", "message"))


def _named(key: Key, failure: CareFailure | None) -> CareFailure | None:
    """Return a failure whose message names the ManagedResource."""
    if failure is None or failure.reason in _NAMED:
        return failure
    message = failure.message or "no message"
    return failure._replace(message=f"ManagedResource {key}: {message}")


def _counts(condition: str, seen: SeenResource) -> bool:
    if condition == RUNTIME_COMPONENTS_HEALTHY:
        return seen.has_class and seen.label in ("", condition)
    if condition == VIRTUAL_COMPONENTS_HEALTHY:
        return not seen.has_class or seen.label == condition
    return seen.label == condition


def _counts_once(condition: str, seen: SeenResource) -> bool:
    by_class = RUNTIME_COMPONENTS_HEALTHY if seen.has_class else VIRTUAL_COMPONENTS_HEALTHY
    return condition == (seen.label if seen.label in _LABELS else by_class)


_LABELS: Final = (
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
)
