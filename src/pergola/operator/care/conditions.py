"""From verdicts to the conditions of a Garden (spec 21 §2.1, §2.2); pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

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
from pergola.health import CareFailure, failing_status
from pergola.operator.care.check import Unable, Verdict
from pergola.operator.care.extras import (
    BACKUPS_HEALTHY,
    CERTIFICATES_VALID,
    CREDENTIALS_ROTATED,
    DNS_RECORDS_HEALTHY,
    EXTRAS,
)
from pergola.operator.rotation.ages import OLDEST

_HEALTHY: Final = {
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE: (
        "HealthzRequestSucceeded",
        "API server /healthz endpoint responded with success status code.",
    ),
    RUNTIME_COMPONENTS_HEALTHY: (
        "RuntimeComponentsRunning",
        "All runtime components are healthy.",
    ),
    VIRTUAL_COMPONENTS_HEALTHY: (
        "VirtualComponentsRunning",
        "All virtual garden components are healthy.",
    ),
    OBSERVABILITY_COMPONENTS_HEALTHY: (
        "ObservabilityComponentsRunning",
        "All observability components are healthy.",
    ),
    CERTIFICATES_VALID: ("CertificatesValid", "No certificate expires soon."),
    CREDENTIALS_ROTATED: ("CredentialsRecent", f"No credential is older than {OLDEST.days} days."),
    BACKUPS_HEALTHY: ("BackupsReady", "All resources for backups are ready."),
    DNS_RECORDS_HEALTHY: ("DNSRecordsReady", "All DNS records are ready."),
}
"""Reason and message of each condition without a problem."""


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
        match verdict:
            case None:
                status, (reason, message) = TRUE, _HEALTHY[kind]
            case Unable():
                status, reason, message = UNKNOWN, "ConditionCheckError", verdict.message
            case CareFailure(reason, message):
                status = failing_status(
                    previous,
                    reason,
                    now=now,
                    threshold=thresholds.get(kind),
                    last_operation=operation,
                )
        condition = update_condition(
            previous, status=status, reason=reason, message=message, now=now
        )
        if condition["status"] != previous.get("status"):  # that also counts as an update
            condition["lastUpdateTime"] = condition["lastTransitionTime"]
        updated.append(condition)
    return merge_conditions(stored, *updated)


def reasons_of(garden: JsonObject) -> dict[str, str]:
    """Return the current reason of each condition of a Garden."""
    stored = maps_at(garden, "status", "conditions")
    return {str(each.get("type")): str(each.get("reason") or "") for each in stored}
