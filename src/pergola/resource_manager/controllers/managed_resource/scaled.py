"""The objects whose replicas HorizontalPodAutoscalers own (spec 10 §4.8)."""

from collections.abc import Iterable

from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, map_at
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError
from pergola.resource_manager.controllers.managed_resource.references import Equivalences


class ScaleTargetError(ManifestError):
    """An autoscaler with an invalid target; the text names it."""


def scaled_objects(
    autoscalers: Iterable[JsonObject], equivalences: Equivalences
) -> frozenset[tuple[str, str, str, str]]:
    """Return group, kind, namespace and name of all scaled objects, under all equivalent kinds.

    Raises:
        ScaleTargetError: the apiVersion of a target is not a group and version.
    """
    return frozenset(
        (kind.group, kind.kind, key.namespace, key.name)
        for autoscaler in autoscalers
        for kind, key in _targets(autoscaler, equivalences)
    )


def _targets(autoscaler: JsonObject, equivalences: Equivalences) -> Iterable[tuple[GroupKind, Key]]:
    target = map_at(autoscaler, "spec", "scaleTargetRef")
    version = str(target.get("apiVersion") or "")
    if version.count("/") > 1:
        raise ScaleTargetError(
            f"HorizontalPodAutoscaler {Key.of(autoscaler)}: spec.scaleTargetRef.apiVersion "
            f"{version!r} is not a group and version"
        )
    kind = GroupVersionKind.parse(version, str(target.get("kind") or "")).group_kind
    key = Key(Key.of(autoscaler).namespace, str(target.get("name") or ""))
    return ((equivalent, key) for equivalent in equivalences.kinds(kind))
