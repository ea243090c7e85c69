"""What one run for a ManagedResource has to do, by comparing its plan with its status."""

from collections.abc import Sequence
from dataclasses import dataclass

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.resource_manager.controllers.managed_resource.plan import Plan, Planned
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    sort_references,
)


@dataclass(frozen=True, slots=True)
class Work:
    """What one run has to do.

    Attributes:
        desired: the objects to apply.
        recorded: the references of all that is managed afterwards.
        obsolete: what was managed and is no longer described.
        released: what was managed and is left to others.
    """

    desired: Sequence[Planned]
    recorded: list[JsonObject]
    obsolete: list[JsonObject]
    released: list[JsonObject]

    @classmethod
    def of(cls, resource: JsonObject, plan: Plan) -> "Work":
        """Compare a plan with what the status says was managed before (spec 10 §4.5)."""
        equivalences = Equivalences.of(map_at(resource, "spec"))
        before = equivalences.index(maps_at(resource, "status", "resources"))
        desired = [planned.after(before.take(planned.reference)) for planned in plan.objects]
        released = [r for r in map(before.take, plan.released) if r is not None]
        left = before.left()
        references = [planned.reference for planned in desired]
        if plan.errors:
            # What cannot be read may describe what seems to be gone: keep it all (spec 10 B1).
            return cls(desired, sort_references([*references, *left, *released]), [], [])
        return cls(desired, sort_references(references), left, released)

    def union(self, present: Sequence[JsonObject]) -> list[JsonObject]:
        """Return what was managed, unchanged, and what will be managed in addition."""
        known = {object_key(reference) for reference in present}
        new = [r for r in self.recorded if object_key(r) not in known]
        return sort_references([*present, *new])
