"""The ConfigMaps and Secrets that an object uses, and annotations that name them (spec 10 §10).

Immutable ConfigMaps and Secrets with unique names are collected once no annotation names them.
Every user must therefore have annotations for the objects it uses, and so must every template: a
Deployment with 0 replicas counts as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    maps_at,
    metadata_of,
)
from pergola.bundle.errors import InvalidObject

ReferenceKind: TypeAlias = Literal["configmap", "secret"]
Path: TypeAlias = tuple[str, ...]


class Reference(NamedTuple):
    """A ConfigMap or Secret that an object uses, in the namespace of that object."""

    kind: ReferenceKind
    name: str


@dataclass(frozen=True, slots=True)
class _Shape:
    """The location of a kind's pod spec, and the other locations with annotations.

    Attributes:
        versions: the versions in which `annotate` supports the kind; none if it does not.
    """

    versions: tuple[str, ...]
    pod_spec: Path
    templates: tuple[Path, ...] = ()


_TEMPLATE: Final = ("spec", "template")
_JOB_TEMPLATE: Final = ("spec", "jobTemplate")
_MANAGED_RESOURCE: Final = GroupKind(marks.GROUP, "ManagedResource")
_PROMETHEUS: Final = GroupKind("monitoring.coreos.com", "Prometheus")


def _workload(*versions: str) -> _Shape:
    return _Shape(versions, (*_TEMPLATE, "spec"), (_TEMPLATE,))


_SHAPES: Final[Mapping[GroupKind, _Shape]] = {
    GroupKind("", "Pod"): _Shape(("v1",), ("spec",)),
    GroupKind("apps", "Deployment"): _workload("v1", "v1beta2", "v1beta1"),
    GroupKind("apps", "StatefulSet"): _workload("v1", "v1beta2", "v1beta1"),
    GroupKind("apps", "DaemonSet"): _workload("v1", "v1beta2"),
    # The garbage collector reads ReplicaSets, so that a rollback finds its objects; their
    # annotations come from their Deployment.
    GroupKind("apps", "ReplicaSet"): _workload(),
    GroupKind("batch", "Job"): _workload("v1"),
    GroupKind("batch", "CronJob"): _Shape(
        ("v1", "v1beta1"),
        (*_JOB_TEMPLATE, *_TEMPLATE, "spec"),
        (_JOB_TEMPLATE, (*_JOB_TEMPLATE, *_TEMPLATE)),
    ),
    _MANAGED_RESOURCE: _Shape(("v1alpha1",), ()),
    _PROMETHEUS: _Shape(("v1",), ("spec",)),
}

# The paths of references to Secrets in volumes; each is a map with a `name`.
_SECRET_REFS: Final = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("flexVolume", "secretRef"),
    ("iscsi", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("storageos", "secretRef"),
)


def references(obj: JsonObject) -> set[Reference]:
    """Return the objects that an object's spec uses; none for kinds known to use none.

    This reads all containers (including init and ephemeral ones), every kind of volume that names a
    ConfigMap or Secret, and pull secrets; for a Prometheus, also the objects that its operator
    mounts.
    """
    kind = GroupVersionKind.of(obj).group_kind
    shape = _SHAPES.get(kind)
    if shape is None:
        return set()
    if kind == _MANAGED_RESOURCE:
        found = _secrets(maps_at(obj, "spec", "secretRefs"))
    elif kind == _PROMETHEUS:
        found = chain(_pod_references(map_at(obj, "spec")), _prometheus_references(obj))
    else:
        found = _pod_references(map_at(obj, *shape.pod_spec))
    return set(found)


def reference_key(kind: ReferenceKind, name: str) -> str:
    """Return the annotation key for a used object, such as `…/secret-82a3537f`."""
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{marks.REFERENCE_PREFIX}{kind}-{digest}"


def annotate(obj: JsonObject, *extra_keys: str) -> JsonObject:
    """Return a copy with annotations, in itself and its templates, that name the objects it uses.

    Call it when the spec is final. Previous reference annotations are replaced, other annotations
    stay.

    Args:
        extra_keys: additional annotations, with an empty value.

    Raises:
        InvalidObject: the kind is not in the table in spec 10 §10.
    """
    gvk = GroupVersionKind.of(obj)
    shape = _SHAPES.get(gvk.group_kind)
    if shape is None or gvk.version not in shape.versions:
        raise InvalidObject(
            f"{gvk} {Key.of(obj)}: the locations of references in this kind are unknown; "
            "annotate its users manually"
        )
    added = reference_annotations(references(obj)) | dict.fromkeys(extra_keys, "")
    for path in ((), *shape.templates):
        obj = _annotated_at(obj, path, added)
    return obj


def reference_annotations(used: Iterable[Reference]) -> dict[str, str]:
    """Return the annotations that name the objects in use, in ascending order."""
    return {reference_key(r.kind, r.name): r.name for r in sorted(used)}


def annotated_references(annotations: Mapping[str, str]) -> set[Reference]:
    """Return what annotations declare as used; only the value counts, not the hash in the key."""
    found: set[Reference] = set()
    for key, name in annotations.items():
        if not name or not key.startswith(marks.REFERENCE_PREFIX):
            continue
        parts = key[len(marks.REFERENCE_PREFIX) :].split("-")
        if len(parts) != 2:
            continue
        if parts[0] == "configmap":
            found.add(Reference("configmap", name))
        elif parts[0] == "secret":
            found.add(Reference("secret", name))
    return found


def _pod_references(spec: JsonObject) -> Iterator[Reference]:
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in maps_at(spec, field):
            yield from _container_references(container)
    for volume in maps_at(spec, "volumes"):
        yield from _volume_references(volume)
    yield from _secrets(maps_at(spec, "imagePullSecrets"))


def _container_references(container: JsonObject) -> Iterator[Reference]:
    for source in maps_at(container, "envFrom"):
        yield from _config_maps([map_at(source, "configMapRef")])
        yield from _secrets([map_at(source, "secretRef")])
    for variable in maps_at(container, "env"):
        yield from _config_maps([map_at(variable, "valueFrom", "configMapKeyRef")])
        yield from _secrets([map_at(variable, "valueFrom", "secretKeyRef")])


def _volume_references(volume: JsonObject) -> Iterator[Reference]:
    yield from _config_maps([map_at(volume, "configMap")])
    yield from _secrets([map_at(volume, "secret"), map_at(volume, "azureFile")], "secretName")
    yield from _secrets(map_at(volume, *path) for path in _SECRET_REFS)
    for source in maps_at(volume, "projected", "sources"):
        yield from _config_maps([map_at(source, "configMap")])
        yield from _secrets([map_at(source, "secret")])


def _prometheus_references(obj: JsonObject) -> Iterator[Reference]:
    spec = map_at(obj, "spec")
    yield from _secrets(_as_maps(spec.get("secrets")))
    yield from _config_maps(_as_maps(spec.get("configMaps")))
    for remote in maps_at(spec, "remoteWrite"):
        auth = map_at(remote, "basicAuth")
        yield from _secrets([map_at(auth, "username"), map_at(auth, "password")])


def _config_maps(sources: Iterable[JsonObject]) -> Iterator[Reference]:
    return (Reference("configmap", name) for name in _names(sources, "name"))


def _secrets(sources: Iterable[JsonObject], field: str = "name") -> Iterator[Reference]:
    return (Reference("secret", name) for name in _names(sources, field))


def _as_maps(names: object) -> list[JsonObject]:
    return [{"name": name} for name in names] if isinstance(names, list) else []


def _names(sources: Iterable[JsonObject], field: str) -> Iterator[str]:
    for source in sources:
        name = source.get(field)
        if isinstance(name, str) and name:
            yield name


def _annotated_at(obj: JsonObject, path: Path, added: dict[str, str]) -> JsonObject:
    """Return a copy along the path; everything else is shared with the original."""
    if not path:
        return _annotated(obj, added)
    step, *rest = path
    child: Any = obj.get(step)
    if not isinstance(child, dict):
        return obj
    return {**obj, step: _annotated_at(child, tuple(rest), added)}


def _annotated(obj: JsonObject, added: dict[str, str]) -> JsonObject:
    before = annotations_of(obj)
    kept = {k: v for k, v in before.items() if not k.startswith(marks.REFERENCE_PREFIX)}
    annotations = kept | added
    if annotations == before:
        return obj
    return {**obj, "metadata": {**metadata_of(obj), "annotations": annotations}}
