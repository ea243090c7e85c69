"""The health of an Extension, as failures by condition (spec 21 §13.6); pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pergola.api.conditions import FALSE, TRUE, UNKNOWN
from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.operator_v1alpha1.extension import REQUIRED_RUNTIME, REQUIRED_VIRTUAL
from pergola.api.texts import abridged
from pergola.health import CareFailure, care
from pergola.operator.conditions import is_true
from pergola.operator.extension.installations import Installation
from pergola.operator.extension.names import (
    ADMISSION_RUNTIME_CHART,
    ADMISSION_VIRTUAL_CHART,
    admission_runtime_resource,
    admission_virtual_resource,
    chart_of,
    runtime_resource,
)

INSTALLATIONS_HEALTHY: Final = "ControllerInstallationsHealthy"
RUNTIME_HEALTHY: Final = "RuntimeHealthy"
ADMISSION_HEALTHY: Final = "AdmissionHealthy"
HEALTHY: Final[Mapping[str, tuple[str, str]]] = {
    INSTALLATIONS_HEALTHY: (
        "ControllerInstallationsRunning",
        "All controller installations are healthy.",
    ),
    RUNTIME_HEALTHY: ("ExtensionComponentsRunning", "All extension components are healthy."),
    ADMISSION_HEALTHY: (
        "ExtensionAdmissionComponentsRunning",
        "All extension admission components are healthy.",
    ),
}
"""The reason and message of each condition when it is `True`."""

_GOOD: Final = ("Valid", "Installed", "Healthy")
_PROGRESSING: Final = "Progressing"


class Unable(NamedTuple):
    """A check lacks some of its inputs."""

    message: str


Find = Callable[[Key], JsonObject | None]
"""Returns a ManagedResource."""
Verdict = CareFailure | Unable | None
"""The problem, or None."""


def relevant(extension: JsonObject, name: str) -> dict[str, tuple[Key, ...]]:
    """Return the conditions of an Extension, each with the ManagedResources behind it."""
    found: dict[str, tuple[Key, ...]] = {}
    if is_true(extension, REQUIRED_VIRTUAL):
        found[INSTALLATIONS_HEALTHY] = ()
    if is_true(extension, REQUIRED_RUNTIME):
        found[RUNTIME_HEALTHY] = (runtime_resource(name),)
    if map_at(extension, "spec", "deployment", "admission"):
        parts = {
            admission_virtual_resource(name): ADMISSION_VIRTUAL_CHART,
            admission_runtime_resource(name): ADMISSION_RUNTIME_CHART,
        }
        found[ADMISSION_HEALTHY] = tuple(
            key for key, chart in parts.items() if chart_of(extension, *chart)
        )
    return found


def check_resources(keys: Iterable[Key], find: Find, now: datetime) -> Verdict:
    """Check ManagedResources: the reason is the first failure's, the message lists all."""
    failures: list[CareFailure] = []
    for key in keys:
        resource = find(key)
        if resource is None:
            return Unable(f"failed to get managed resource {key.name}: it does not exist")
        failure = care(resource, now=now)
        if failure is not None:
            failures.append(failure)
    return _combined(failures)


def check_installations(found: Iterable[Installation], current: str) -> Verdict:
    """Check the installations of an Extension.

    Args:
        current: The resourceVersion of its registration.
    """
    ordered = sorted(found, key=lambda each: each.where)
    failures = (_first_failure(each, current) for each in ordered)
    return _combined([failure for failure in failures if failure is not None])


def _first_failure(found: Installation, current: str) -> CareFailure | None:
    if found.version != current:
        text = f"observed resource version of controller registration '{found.registration}' "
        text += f"outdated ({found.version}/{current})"
        return CareFailure("OutdatedControllerRegistration", f"{found.where}: {text}")
    for condition, message in _failing(found):
        return CareFailure(str(condition.get("reason") or ""), f"{found.where}: {message}")
    kinds = (*_GOOD, _PROGRESSING)
    missing = [kind for kind in kinds if found.condition(kind) is None]
    if not missing:
        return None
    text = f"ControllerInstallation is missing the following condition(s), [{', '.join(missing)}]"
    return CareFailure("MissingControllerInstallationCondition", f"{found.where}: {text}")


def _failing(found: Installation) -> Iterator[tuple[JsonObject, str]]:
    bad = {**dict.fromkeys(_GOOD, (FALSE, UNKNOWN)), _PROGRESSING: (TRUE, UNKNOWN)}
    for kind, statuses in bad.items():
        condition = found.condition(kind)
        if condition is not None and condition.get("status") in statuses:
            yield condition, str(condition.get("message") or "")


def _combined(failures: list[CareFailure]) -> CareFailure | None:
    if not failures:
        return None
    messages = [failure.message for failure in failures]
    return CareFailure(failures[0].reason, abridged(messages, separator="; "))
