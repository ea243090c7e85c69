"""The plan of a reconciliation: its tasks, and the objects that each would change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key
from pergola.controllers.references import Reference
from pergola.garden.components.component import Target


class Verb(StrEnum):
    """The effect on an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


class Fate(StrEnum):
    """The outcome of a task."""

    RUN = "runs"
    REMOVE = "removes"
    SKIP = "is skipped"
    UNKNOWN = "cannot be foreseen"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that would change.

    Attributes:
        path: Such as `spec.ports[web].port`.
        old: The live value; None if the object lacks the field, or if the value is secret.
        new: The desired value; None if the field would be removed, or if the value is secret.
        keys: For secret data, the keys with changing values.
    """

    path: str
    old: JsonValue = None
    new: JsonValue = None
    keys: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return the field for programs."""
        if self.keys:
            return {"path": self.path, "keys": list(self.keys)}
        return {"path": self.path, "old": self.old, "new": self.new}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An object that would be created, changed or deleted.

    Attributes:
        cluster: The cluster that finally contains the object.
        managed: The ManagedResource that contains it; empty if the operator itself writes it.
        fields: The changing fields; none for an object that would be created or deleted.
    """

    verb: Verb
    gvk: GroupVersionKind
    key: Key
    cluster: Target = Target.RUNTIME
    managed: str = ""
    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        return f"{self.gvk.kind} {self.key}"

    def to_json(self) -> JsonObject:
        """Return the change for programs."""
        return {
            "verb": str(self.verb),
            "cluster": self.cluster.value,
            "managedResource": self.managed,
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "fields": [each.to_json() for each in self.fields],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A task, and its effect.

    Attributes:
        flow: The name of the flow; empty for steps before and after the flows.
        after: The names of the tasks that precede it.
        why: What it does, why it is skipped or removes something, or why that is unknown.
        waits: A sentence about an object that it would wait for; empty if there is none.
        unchanged: The number of objects that are already as desired.
    """

    flow: str
    name: str
    fate: Fate
    why: str = ""
    after: tuple[str, ...] = ()
    waits: str = ""
    changes: tuple[Change, ...] = ()
    unchanged: int = 0

    def to_json(self) -> JsonObject:
        """Return the task for programs."""
        return {
            "flow": self.flow,
            "name": self.name,
            "fate": str(self.fate),
            "why": self.why,
            "after": list(self.after),
            "waits": self.waits,
            "unchanged": self.unchanged,
            "changes": [each.to_json() for each in self.changes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of one Garden.

    Attributes:
        missing: Objects that the Garden names but the cluster lacks: the reconciliation would fail.
        problem: Why the reconciliation would not start; empty if it would.
        rotations: The rotations in progress, such as `serviceAccountKey is Prepared`.
    """

    garden: str
    tasks: Sequence[Planned] = ()
    missing: Sequence[Reference] = ()
    problem: str = ""
    rotations: Sequence[str] = field(default_factory=tuple)

    @property
    def changes(self) -> Iterator[Change]:
        """All changes, in the order of the tasks."""
        return (change for task in self.tasks for change in task.changes)

    @property
    def is_empty(self) -> bool:
        """Whether it is certain that nothing would change."""
        is_known = all(task.fate is not Fate.UNKNOWN for task in self.tasks)
        return is_known and not any(self.changes) and not self.missing and not self.problem

    def count(self, verb: Verb) -> int:
        """Return the number of objects with this effect."""
        return sum(change.verb is verb for change in self.changes)

    def to_json(self) -> JsonObject:
        """Return the plan for programs."""
        missing: list[JsonValue] = [
            {"kind": kind, "namespace": key.namespace, "name": key.name, "field": path}
            for kind, key, path in self.missing
        ]
        return {
            "garden": self.garden,
            "changed": not self.is_empty,
            "problem": self.problem,
            "missing": missing,
            "rotations": list(self.rotations),
            "tasks": [task.to_json() for task in self.tasks],
        }
