"""Responsibility of instances for ManagedResources (spec 10 §3.2).

Several instances share the ManagedResources of a cluster by class. Each marks its own with a
finalizer, so that no object is ever managed by two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.marks import FINALIZER, finalizer_for

DEFAULT_CLASS: Final = "resources"
ALL_CLASSES: Final = "*"


@dataclass(frozen=True, slots=True)
class Responsibility:
    """An instance of the resource manager, by its class."""

    resource_class: str

    @property
    def finalizer(self) -> str:
        """The finalizer that this instance adds to ManagedResources."""
        return finalizer_for(self.resource_class)

    def is_responsible(self, resource_class: str | None) -> bool:
        """Return whether this instance serves a class; None or empty is the default class."""
        if self.resource_class == ALL_CLASSES:
            return True
        return (resource_class or DEFAULT_CLASS) == self.resource_class

    def concerns(self, resource_class: str | None, finalizers: Sequence[str]) -> bool:
        """Return whether events of the ManagedResource matter here: it is ours, or was."""
        return self.is_responsible(resource_class) or self.finalizer in finalizers

    def must_clean_up(self, resource_class: str | None, finalizers: Sequence[str]) -> bool:
        """Return whether the ManagedResource moved away and our objects must be deleted first."""
        return not self.is_responsible(resource_class) and self.finalizer in finalizers

    def must_wait(self, resource_class: str | None, finalizers: Sequence[str]) -> bool:
        """Return whether the ManagedResource moved here but its former instance is not done yet."""
        if not self.is_responsible(resource_class):
            return False
        first = next((f for f in finalizers if f.startswith(FINALIZER)), None)
        return first is not None and first != self.finalizer
