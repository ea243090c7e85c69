"""From verdicts to the conditions of a Garden (spec 21 §2.1, §2.2); pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.conditions import (
    TRUE,
    UNKNOWN,
    get_condition,
    init_condition,
    merge_conditions,
    update_condition,
)
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.health import failing_status
from pergola.operator.care.check import Unable, Verdict
from pergola.operator.care.extras import (
    BACKUPS_HEALTHY,
    CERTIFICATES_VALID,
    CREDENTIALS_ROTATED,
    DNS_RECORDS_HEALTHY,
    EXTRAS,
)
from pergola.operator.rotation.ages import OLDEST

CHECK_ERROR: Final = "ConditionCheckError"


class _Content(NamedTuple):
    status: str
    reason: str
    message: str


_HEALTHY: Final = {
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE: _Content(
        TRUE,
        "HealthzRequestSucceeded",
        "API server /healthz endpoint responded with success status code.",
    ),
    RUNTIME_COMPONENTS_HEALTHY: _Content(
        TRUE, "RuntimeComponentsRunning", "All runtime components are healthy."
    ),
    VIRTUAL_COMPONENTS_HEALTHY: _Content(
        TRUE, "VirtualComponentsRunning", "All virtual garden components are healthy."
    ),
    OBSERVABILITY_COMPONENTS_HEALTHY: _Content(
        TRUE, "ObservabilityComponentsRunning", "All observability components are healthy."
    ),
    CERTIFICATES_VALID: _Content(TRUE, "CertificatesValid", "No certificate expires soon."),
    CREDENTIALS_ROTATED: _Content(
        TRUE, "CredentialsRecent", f"No credential is older than {OLDEST.days} days."
    ),
    BACKUPS_HEALTHY: _Content(TRUE, "BackupsReady", "All resources for backups are ready."),
    DNS_RECORDS_HEALTHY: _Content(TRUE, "DNSRecordsReady", "All DNS records are ready."),
}


def conditions_of(
    garden: JsonObject,
    verdicts: Mapping[str, Verdict],
    thresholds: Mapping[str, timedelta],
    now: datetime,
) -> list[JsonObject]:
    """Return all conditions of a Garden: those of the verdicts updated, the others as they are.

    An extra condition without a verdict is removed.
    """
    gone = set(EXTRAS) - verdicts.keys()
    stored = [c for c in maps_at(garden, "status", "conditions") if c.get("type") not in gone]
    operation = map_at(garden, "status", "lastOperation")
    updated = []
    for kind, verdict in verdicts.items():
        previous = get_condition(stored, kind) or init_condition(kind, now)
        content = _content(previous, verdict, thresholds.get(kind), operation, now)
        updated.append(_updated(previous, content, now))
    return merge_conditions(stored, *updated)


def reasons_of(garden: JsonObject) -> dict[str, str]:
    """Return the current reason of each condition of a Garden."""
    stored = maps_at(garden, "status", "conditions")
    return {str(each.get("type")): str(each.get("reason") or "") for each in stored}


def _content(
    previous: JsonObject,
    verdict: Verdict,
    threshold: timedelta | None,
    operation: JsonObject,
    now: datetime,
) -> _Content:
    if verdict is None:
        return _HEALTHY[previous["type"]]
    if isinstance(verdict, Unable):
        return _Content(UNKNOWN, CHECK_ERROR, verdict.message)
    status = failing_status(
        previous, verdict.reason, now=now, threshold=threshold, last_operation=operation
    )
    return _Content(status, verdict.reason, verdict.message)


def _updated(previous: JsonObject, content: _Content, now: datetime) -> JsonObject:
    """Return the condition with new content; a change of its status also counts as an update."""
    updated = update_condition(previous, **content._asdict(), now=now)
    if updated["status"] != previous.get("status"):
        updated["lastUpdateTime"] = updated["lastTransitionTime"]
    return updated
