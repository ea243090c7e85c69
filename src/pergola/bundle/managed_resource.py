"""A ManagedResource and the Secrets with its objects, ready to be written (spec 10 §12)."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    maps_at,
    metadata_of,
    name_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.names import make_unique
from pergola.bundle.references import annotate
from pergola.bundle.registry import DATA_KEY, QUALITY, Registry
from pergola.bundle.split import split

SEED_CLASS: Final = "seed"
_SHOOT_NAMESPACES: Final = "shoot-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings for managing the objects (spec 10 §2.1); None leaves one at its default.

    Attributes:
        resource_class: the class of the responsible resource manager.
        inject_labels: labels for every object and its pod template.
        keep_objects: whether the objects stay when the ManagedResource is deleted.
        force_overwrite_labels: whether labels that are not in the manifests are removed.
        force_overwrite_annotations: the same for annotations.
        equivalences: sets of kinds under which the target serves the same objects.
        delete_persistent_volume_claims: whether the claims of a StatefulSet are deleted with it.
    """

    resource_class: str | None = None
    inject_labels: Mapping[str, str] | None = None
    keep_objects: bool | None = None
    force_overwrite_labels: bool | None = None
    force_overwrite_annotations: bool | None = None
    equivalences: Sequence[Sequence[GroupKind]] | None = None
    delete_persistent_volume_claims: bool | None = None

    def spec(self, secrets: Sequence[str]) -> JsonObject:
        """Return the spec of a ManagedResource that reads these Secrets."""
        fields: JsonObject = {
            "class": self.resource_class,
            "secretRefs": [{"name": name} for name in secrets],
            "injectLabels": None if self.inject_labels is None else dict(self.inject_labels),
            "keepObjects": self.keep_objects,
            "forceOverwriteLabels": self.force_overwrite_labels,
            "forceOverwriteAnnotations": self.force_overwrite_annotations,
            "equivalences": _equivalences(self.equivalences),
            "deletePersistentVolumeClaims": self.delete_persistent_volume_claims,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Bundle:
    """A ManagedResource, and the immutable Secrets that it reads: the input of `apply`."""

    managed_resource: JsonObject
    secrets: tuple[JsonObject, ...]

    @property
    def key(self) -> Key:
        """The key of the ManagedResource."""
        return Key.of(self.managed_resource)


def build(
    namespace: str,
    name: str,
    objects: Registry,
    *,
    settings: Settings = Settings(),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    secret_prefix: bool = True,
    quality: int = QUALITY,
) -> Bundle:
    """Return a bundle of the objects, in as many Secrets as necessary.

    Large content takes seconds of CPU time: in an event loop, call this through
    `asyncio.to_thread`.

    Args:
        labels: of the ManagedResource.
        annotations: of the ManagedResource, in addition to those for its Secrets.
        secret_prefix: whether names of Secrets start with `managedresource-`.
        quality: see `Registry.serialize`.

    Raises:
        ObjectTooLarge: an object does not fit into a Secret.
    """
    base = secret_name(name, prefix=secret_prefix)
    parts = split(objects.documents(), quality=quality)
    secrets = tuple(make_unique(_secret(namespace, base, part)) for part in parts)
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    resource: JsonObject = {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": metadata,
        "spec": settings.spec([name_of(secret) for secret in secrets]),
    }
    return Bundle(annotate(resource), secrets)


def for_shoot(
    namespace: str,
    name: str,
    objects: Registry,
    *,
    origin: str,
    keep_objects: bool = False,
    settings: Settings = Settings(),
    labels: Mapping[str, str] | None = None,
) -> Bundle:
    """Return a bundle for the cluster of a Shoot, which the default class handles.

    Its objects are labelled so that the cleanup of a Shoot skips them.

    Args:
        origin: its creator, e.g. `gardener`, by which it can be selected for deletion.
        keep_objects: written even if False.
        settings: the other settings; its class is ignored.
        labels: of the ManagedResource; they win.
    """
    inject = {**(settings.inject_labels or {}), marks.NO_CLEANUP: "true"}
    settings = replace(
        settings, resource_class=None, inject_labels=inject, keep_objects=keep_objects
    )
    labels = {marks.ORIGIN_LABEL: origin, **(labels or {})}
    return build(namespace, name, objects, settings=settings, labels=labels)


def for_seed(
    namespace: str,
    name: str,
    objects: Registry,
    *,
    keep_objects: bool = False,
    settings: Settings = Settings(),
    labels: Mapping[str, str] | None = None,
) -> Bundle:
    """Return a bundle for the Seed cluster, which the class `seed` handles.

    Outside the namespaces of Shoots, it is labelled as a component of the Seed itself.

    Args:
        keep_objects: written even if False.
        settings: the other settings; its class is ignored.
        labels: of the ManagedResource; they win.
    """
    settings = replace(settings, resource_class=SEED_CLASS, keep_objects=keep_objects)
    labels = dict(labels or {})
    if not namespace.startswith(_SHOOT_NAMESPACES):
        labels.setdefault(marks.ROLE, marks.ROLE_SEED_SYSTEM_COMPONENT)
    return build(namespace, name, objects, settings=settings, labels=labels)


def secret_name(name: str, *, prefix: bool = True) -> str:
    """Return the name prefix of a ManagedResource's Secrets."""
    return f"{marks.SECRET_NAME_PREFIX}{name}" if prefix else name


def secret_names(resource: JsonObject) -> set[str]:
    """Return the Secrets that a ManagedResource reads."""
    names = (ref.get("name") for ref in maps_at(resource, "spec", "secretRefs"))
    return {name for name in names if name}


def merge_into(live: JsonObject, desired: JsonObject) -> JsonObject:
    """Return the desired state of a live ManagedResource; equal to it if nothing changes.

    The desired spec replaces the live one, labels and annotations are added to existing ones, and
    annotations for Secrets that are no longer read are removed.
    """
    metadata = {**metadata_of(live)}
    for field, read in (("labels", labels_of), ("annotations", annotations_of)):
        if both := read(live) | read(desired):
            metadata[field] = both
    return annotate({**live, "metadata": metadata, "spec": desired["spec"]})


def _secret(namespace: str, name: str, data: bytes) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {DATA_KEY: base64.b64encode(data).decode()},
    }


def _equivalences(sets: Sequence[Sequence[GroupKind]] | None) -> list[list[JsonObject]] | None:
    if sets is None:
        return None
    return [[{"group": kind.group, "kind": kind.kind} for kind in kinds] for kinds in sets]
