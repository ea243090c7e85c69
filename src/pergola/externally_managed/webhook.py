"""The webhook that protects the annotation of external infrastructure (spec 50 §3).

A provider's validating webhook adds `annotation_findings` to its own findings, so that one answer
has all of them; a provider without a webhook serves `AnnotationGuard` alone.
"""

from collections.abc import Sequence
from typing import Final

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import Request, Verdict, allowed, invalid
from pergola.api import field_errors
from pergola.api.field_errors import Cause
from pergola.api.objects import GroupKind, JsonObject, annotations_of
from pergola.externally_managed.predicate import is_externally_managed

DETAIL: Final = "removal of externally managed annotation is not allowed"
FIELD: Final = "metadata.annotations"
PATH: Final = "/validate-externally-managed"
"""The path where `pergola infra-manager` serves the guard."""


def annotation_findings(new: JsonObject, old: JsonObject | None) -> list[Cause]:
    """Return the finding about an update that removes the annotation; its value may change."""
    if old is None or not is_externally_managed(old) or is_externally_managed(new):
        return []
    return [field_errors.invalid(FIELD, {**annotations_of(new)}, DETAIL)]


class AnnotationGuard:
    """A validating webhook for the annotation alone, for InfraClusters of any kind."""

    def __call__(self, request: Request) -> Verdict:
        """Deny updates that remove the annotation, even while the object is being deleted."""
        if request.operation != "UPDATE" or request.subresource or request.object is None:
            return allowed(because=f"{request.operation} cannot remove the annotation")
        causes = annotation_findings(request.object, request.old_object)
        if not causes:
            return allowed(because="the annotation was not set, or is still set")
        kind = str(GroupKind(request.kind.group, request.kind.kind))
        return invalid(kind, request.name, tuple(causes))


def registration(kind: GroupKind, plural: str, versions: Sequence[str], path: str) -> Registration:
    """Return the registration of an AnnotationGuard: updates of the main resource only."""
    return Registration(
        name=f"externally-managed.{plural}.{kind.group}",
        path=path,
        kind="validating",
        rules=(Rule(("UPDATE",), (kind.group,), tuple(versions), (plural,)),),
        match_policy="Equivalent",
        timeout_seconds=5,
    )
