"""Kubernetes objects as plain maps."""

from collections.abc import Callable, Mapping
from typing import Final

from pergola.api.objects import JsonObject

Images = Callable[[str], str]
"""Maps a name in the image vector to an image reference."""

KUBE_SYSTEM: Final = "kube-system"
"""The namespace of system components."""


def manifest(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **content: object,
) -> JsonObject:
    """Return an object, cluster-scoped without a namespace; empty metadata is omitted."""
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def selector(labels: Mapping[str, str]) -> JsonObject:
    """Return a label selector for all of these labels."""
    return {"matchLabels": dict(labels)}
