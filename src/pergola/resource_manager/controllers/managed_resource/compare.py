"""Comparison of objects: whether an update would change anything (spec 10 B7).

The API server fills in defaults, counts `1.0` as `1` and `1000m` as `1`. An applied object
therefore never equals its manifest literally. Here it does, unless it was edited.
"""

import base64
from typing import Final

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    annotations_of,
    labels_of,
    owner_references_of,
)
from pergola.kube.equality.defaults import shape_of
from pergola.kube.equality.shapes import same
from pergola.resource_manager.target.content import content_of

_SECRET: Final = GroupKind("", "Secret")
_NAMESPACE: Final = GroupKind("", "Namespace")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# Annotations that Kubernetes controllers would restore immediately after removal.
_KEPT_BY_KUBERNETES: Final = (
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "batch.kubernetes.io/",
    "kubernetes.io/service-account.uid",
)


def needs_update(live: JsonObject, merged: JsonObject) -> bool:
    """Return whether sending `merged` would change the live object.

    For kinds with unknown defaults, a field that only the live object has counts as a difference.
    """
    kind = GroupVersionKind.of(merged).group_kind
    if _labels_differ(live, merged, kind) or _annotations_differ(live, merged):
        return True
    if owner_references_of(live) != owner_references_of(merged):
        return True
    if kind == _SECRET:
        merged = _with_encoded_data(merged)
    return not same(content_of(live), content_of(merged), shape_of(kind))


def _labels_differ(live: JsonObject, merged: JsonObject, kind: GroupKind) -> bool:
    present, desired = labels_of(live), labels_of(merged)
    if kind == _NAMESPACE and _NAME_LABEL in present and _NAME_LABEL not in desired:
        present = {key: value for key, value in present.items() if key != _NAME_LABEL}
    return present != desired


def _annotations_differ(live: JsonObject, merged: JsonObject) -> bool:
    present, desired = annotations_of(live), annotations_of(merged)
    if present == desired:
        return False
    return desired != {
        key: value
        for key, value in present.items()
        if key in desired or not is_kept_by_kubernetes(key)
    }


def is_kept_by_kubernetes(annotation: str) -> bool:
    """Return whether a controller of Kubernetes owns the annotation."""
    return annotation.startswith(_KEPT_BY_KUBERNETES)


def _with_encoded_data(secret: JsonObject) -> JsonObject:
    """Merge `stringData` into `data`, encoded, as the server stores it."""
    plain = secret.get("stringData")
    if not isinstance(plain, dict):
        return secret
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
    without = {name: value for name, value in secret.items() if name != "stringData"}
    return {**without, "data": {**(secret.get("data") or {}), **encoded}}
