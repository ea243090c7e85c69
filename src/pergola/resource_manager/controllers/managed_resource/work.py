"""The work of one run for a ManagedResource: the difference between its plan and its status."""

from collections.abc import Sequence
from dataclasses import dataclass

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.resource_manager.controllers.managed_resource.plan import Plan, Planned
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    fitted,
    object_key,
    sort_references,
)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one run.

    Attributes:
        desired: the objects to apply.
        recorded: the references of all objects managed afterwards.
        obsolete: formerly managed objects that are no longer described.
        released: formerly managed objects that are left to others.
    """

    desired: Sequence[Planned]
    recorded: list[JsonObject]
    obsolete: list[JsonObject]
    released: list[JsonObject]

    @classmethod
    def of(cls, resource: JsonObject, plan: Plan, unrecorded: Sequence[JsonObject] = ()) -> "Work":
        """Compare a plan with the previously managed objects in the status (spec 10 §4.5).

        Args:
            unrecorded: previously managed objects that the status lacks.
        """
        equivalences = Equivalences.of(map_at(resource, "spec"))
        before = equivalences.index([*maps_at(resource, "status", "resources"), *unrecorded])
        desired = [planned.after(before.take(planned.reference)) for planned in plan.objects]
        released = [r for r in map(before.take, plan.released) if r is not None]
        left = before.left()
        references = [planned.reference for planned in desired]
        if plan.errors:
            # Unreadable manifests may describe objects that seem to be missing: keep all (spec 10
            # B1).
            kept = fitted(sort_references([*references, *left, *released]))
            return cls(desired, kept, [], [])
        size = sum(len(planned.recorded) for planned in desired)
        return cls(desired, fitted(sort_references(references), size), left, released)

    def union(self, present: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the previously managed objects, unchanged, and the additional ones."""
        known = {object_key(reference) for reference in present}
        new = [r for r in self.recorded if object_key(r) not in known]
        return fitted(sort_references([*present, *new]))
