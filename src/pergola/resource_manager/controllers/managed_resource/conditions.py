"""The conditions that this controller writes, as functions from status to status (spec 10 §6)."""

from collections.abc import Sequence
from datetime import datetime

from pergola.api.conditions import get_condition, set_condition
from pergola.api.managed_resource_conditions import (
    APPLIED,
    APPLIED_MESSAGE,
    HEALTHY,
    PROGRESSING,
    Reason,
)
from pergola.api.objects import JsonObject, maps_at
from pergola.resource_manager.controllers.managed_resource.opponents import (
    remarks_in,
    with_remarks,
)

_NAMED_AT_MOST = 20
_KEPT_REASONS = frozenset({Reason.APPLY_FAILED, Reason.DELETION_FAILED, Reason.DELETION_PENDING})


class Conditions:
    """A list of conditions to change; setting the same value again keeps the times."""

    def __init__(self, resource: JsonObject, now: datetime) -> None:
        self.items: list[JsonObject] = list(maps_at(resource, "status", "conditions"))
        self._now = now

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set one condition."""
        self.items = set_condition(
            self.items, kind, status=status, reason=reason, message=message, now=self._now
        )

    def get(self, kind: str) -> JsonObject:
        """Return the current state of a condition, or an empty map."""
        return get_condition(self.items, kind) or {}

    # Sets of conditions that belong together

    def ignored(self) -> None:
        """Set all conditions of an ignored ManagedResource (spec 10 §4.2)."""
        message = "The ManagedResource is ignored, as its annotation asks."
        self.set(HEALTHY, "True", Reason.IGNORED, message)
        self.set(PROGRESSING, "False", Reason.IGNORED, message)
        self.set(APPLIED, "True", Reason.IGNORED, message)

    def pending(self) -> None:
        """Reset all conditions, because the content changed (spec 10 §4.4)."""
        message = "The checks have not been run for the new content yet."
        self.set(HEALTHY, "Unknown", Reason.CHECKS_PENDING, message)
        self.set(PROGRESSING, "Unknown", Reason.CHECKS_PENDING, message)
        applied = self.get(APPLIED)
        if applied.get("reason") in _KEPT_REASONS:
            reason, message = applied["reason"], applied.get("message") or ""
        else:
            reason, message = Reason.APPLY_PROGRESSING, "The resources are being applied."
        self.set(APPLIED, "Progressing", reason, message)

    def deleting(self, *, keep_objects: bool) -> None:
        """Set all conditions for a deletion or hand-over (spec 10 §4.10)."""
        message = "The resources are being deleted."
        self.set(HEALTHY, "False", Reason.DELETION_PENDING, message)
        self.set(PROGRESSING, "True", Reason.DELETION_PENDING, message)
        if keep_objects:
            return
        applied = self.get(APPLIED)
        if applied.get("reason") in (Reason.DELETION_PENDING, Reason.DELETION_FAILED):
            message = applied.get("message") or message
        self.set(APPLIED, "Progressing", Reason.DELETION_PENDING, message)

    def deletion_pending(self, message: str) -> None:
        """Report that old objects still exist."""
        self.set(APPLIED, "Progressing", Reason.DELETION_PENDING, message)

    def failed(self, reason: str, message: str) -> None:
        """Report that the run failed."""
        self.set(APPLIED, "False", reason, message)

    def applied(self, remarks: Sequence[str] = ()) -> None:
        """Report that everything is applied, perhaps with remarks about objects."""
        message = with_remarks(APPLIED_MESSAGE, remarks)
        self.set(APPLIED, "True", Reason.APPLY_SUCCEEDED, message)


def applied_remarks(resource: JsonObject) -> list[str]:
    """Return the remarks about objects that the Applied condition contains."""
    found = get_condition(maps_at(resource, "status", "conditions"), APPLIED) or {}
    return remarks_in(str(found.get("message") or ""))


def is_announced(resource: JsonObject) -> bool:
    """Return whether the status says that the content is being applied."""
    applied = get_condition(maps_at(resource, "status", "conditions"), APPLIED) or {}
    return applied.get("status") == "Progressing"


def errors_message(errors: Sequence[str]) -> str:
    """Return a single error unchanged; for several, the first ones and the total count."""
    if len(errors) == 1:
        return errors[0]
    named = list(errors[:_NAMED_AT_MOST])
    if len(errors) > len(named):
        named.append(f"and {len(errors) - len(named)} more")
    return f"{len(errors)} errors occurred: [{', '.join(named)}]"
