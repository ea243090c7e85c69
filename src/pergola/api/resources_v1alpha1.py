"""`resources.gardener.cloud/v1alpha1`: the ManagedResource (spec 10 §2)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Self

from msgspec import field

from pergola.api import marks
from pergola.api.core_v1 import Condition, GroupKind, LocalObjectReference, ObjectReference
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import (
    AGE,
    ATOMIC,
    Column,
    Object,
    Value,
    condition_column,
    kind,
)
from pergola.api.schema.read import read

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{marks.GROUP}/{VERSION}"
MANAGED_RESOURCE: Final = GroupVersionKind(marks.GROUP, VERSION, "ManagedResource")


class ManagedResourceSpec(Value):
    """The objects to manage, and how."""

    secret_refs: list[Annotated[LocalObjectReference, ATOMIC]]
    """The Secrets with the manifests, in the namespace of the ManagedResource."""
    class_: str | None = field(name="class", default=None)
    """The class of the responsible resource manager; the default one if absent or empty."""
    delete_persistent_volume_claims: bool = False
    """Whether to delete the claims of a StatefulSet together with it."""
    equivalences: list[list[GroupKind]] = []
    """Sets of kinds under which the API server serves the same objects."""
    force_overwrite_annotations: bool = False
    """Whether to remove annotations that are not in the manifest."""
    force_overwrite_labels: bool = False
    """Whether to remove labels that are not in the manifest."""
    inject_labels: dict[str, str] = {}
    """Labels for every object, its pod template and its volume claim templates."""
    keep_objects: bool = False
    """Whether to keep the objects when the ManagedResource is deleted or moves to another class."""

    @classmethod
    def from_object(cls, obj: JsonObject) -> Self:
        """Read `spec` of a ManagedResource; unknown fields are ignored.

        An object without a spec, which the schema allows, has no Secrets.

        Raises:
            Malformed: the message names the object and every invalid field.
        """
        spec = obj.get("spec")
        value = {"secretRefs": []} if spec is None else spec
        return read(cls, value, path="spec", of=f"ManagedResource {Key.of(obj)}")


class ManagedObjectReference(ObjectReference):
    """A reference to a managed object, with the metadata of its last manifest."""

    annotations: dict[str, str] = {}
    """The annotations in the manifest."""
    labels: dict[str, str] = {}
    """The labels in the manifest, and injected ones."""


class ManagedResourceStatus(Value):
    """The observed state of the objects."""

    conditions: list[Condition] = []
    """Whether the objects are applied, healthy and rolled out."""
    observed_generation: int = 0
    """The generation of the ManagedResource that was last applied."""
    resources: list[Annotated[ManagedObjectReference, ATOMIC]] = []
    """All managed objects."""
    secrets_data_checksum: str | None = None
    """A checksum of the data that was last applied."""

    @classmethod
    def from_object(cls, obj: JsonObject) -> Self:
        """Read `status` of a ManagedResource; an object without one has an empty status.

        Raises:
            Malformed: the message names the object and every invalid field.
        """
        status = obj.get("status")
        value = {} if status is None else status
        return read(cls, value, path="status", of=f"ManagedResource {Key.of(obj)}")


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
    """A set of objects that are kept in the target cluster exactly as Secrets describe them."""

    spec: ManagedResourceSpec | None = None
    """The objects to manage, and how."""
    status: ManagedResourceStatus | None = None
    """The observed state of the objects."""


def managed_resource_crd() -> JsonObject:
    """Return the CustomResourceDefinition of ManagedResources."""
    return crd(ManagedResource)
