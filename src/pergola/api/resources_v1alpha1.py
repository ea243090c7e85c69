"""`resources.gardener.cloud/v1alpha1`: the ManagedResource (spec 10 §2)."""

from typing import Annotated, Final, Self

import msgspec
from msgspec import field

from pergola.api import marks
from pergola.api.core_v1 import Condition, GroupKind, LocalObjectReference, ObjectReference
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.schema.declare import (
    AGE,
    ATOMIC,
    Column,
    Object,
    Value,
    condition_column,
    kind,
)

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{marks.GROUP}/{VERSION}"
MANAGED_RESOURCE: Final = GroupVersionKind(marks.GROUP, VERSION, "ManagedResource")


class MalformedObject(ValueError):
    """An object that the schema of its kind would not have let in."""


class ManagedResourceSpec(Value):
    """Which objects to manage, and how."""

    secret_refs: list[Annotated[LocalObjectReference, ATOMIC]]
    """The Secrets that hold the manifests, in the namespace of the ManagedResource."""
    class_: str | None = field(name="class", default=None)
    """Which instance of the resource manager is responsible; absent or empty for the default."""
    delete_persistent_volume_claims: bool = False
    """Whether the claims of a StatefulSet are deleted together with it."""
    equivalences: list[list[GroupKind]] = []
    """Sets of kinds under which the API server serves the same objects."""
    force_overwrite_annotations: bool = False
    """Whether annotations that the manifest does not have are removed."""
    force_overwrite_labels: bool = False
    """Whether labels that the manifest does not have are removed."""
    inject_labels: dict[str, str] = {}
    """Labels for every object, its pod template and its volume claim templates."""
    keep_objects: bool = False
    """Whether the objects stay when the ManagedResource is deleted or moves to another class."""

    @classmethod
    def from_object(cls, obj: JsonObject) -> Self:
        """Reads `spec` of a ManagedResource; fields that are not known here are passed over.

        An object without a spec, which the schema allows, has no Secrets.

        Raises:
            MalformedObject: the sentence names the object and the field.
        """
        spec = obj.get("spec")
        return _read(obj, {"secretRefs": []} if spec is None else spec, cls, "spec")


class ManagedObjectReference(ObjectReference):
    """Names an object that is managed, and keeps what its manifest last said about metadata."""

    annotations: dict[str, str] = {}
    """The annotations in the manifest."""
    labels: dict[str, str] = {}
    """The labels in the manifest, and those that were added to them."""


class ManagedResourceStatus(Value):
    """What is known about the objects."""

    conditions: list[Condition] = []
    """Whether the objects are applied, healthy and rolled out."""
    observed_generation: int = 0
    """The generation of the ManagedResource that was applied last."""
    resources: list[Annotated[ManagedObjectReference, ATOMIC]] = []
    """Every object that is managed."""
    secrets_data_checksum: str | None = None
    """A checksum of the data in the Secrets that were applied last."""

    @classmethod
    def from_object(cls, obj: JsonObject) -> Self:
        """Reads `status` of a ManagedResource; an object without one has an empty status.

        Raises:
            MalformedObject: the sentence names the object and the field.
        """
        status = obj.get("status")
        return _read(obj, {} if status is None else status, cls, "status")


@kind(
    API_VERSION,
    short=("mr",),
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        Column("Class", ".spec.class"),
        condition_column("Applied", APPLIED),
        condition_column("Healthy", HEALTHY),
        condition_column("Progressing", PROGRESSING),
        AGE,
    ),
)
class ManagedResource(Object):
    """A set of objects that is kept in the target cluster exactly as its Secrets describe it."""

    spec: ManagedResourceSpec | None = None
    """Which objects to manage, and how."""
    status: ManagedResourceStatus | None = None
    """What is known about the objects."""


def _read[V](obj: JsonObject, value: object, cls: type[V], at: str) -> V: ...
