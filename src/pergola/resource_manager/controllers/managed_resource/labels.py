"""Labels that are injected into every object of a ManagedResource (spec 10 §5.2)."""

from collections.abc import Mapping

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError


class LabelError(ManifestError):
    """A manifest has a value of the wrong type in place of labels; the text names the field."""


def inject_labels(obj: JsonObject, labels: Mapping[str, str]) -> JsonObject:
    """Return the object with labels on itself, its pod template and its volume claim templates.

    The argument is not changed, and unchanged parts are shared with it. Injected values win.

    Raises:
        LabelError: a volume claim template is not a map.
    """
    injected = _labelled(obj, labels)
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return injected
    changed: JsonObject = {}
    if isinstance(spec.get("template"), dict):
        changed["template"] = _labelled(spec["template"], labels)
    if isinstance(spec.get("volumeClaimTemplates"), list):
        changed["volumeClaimTemplates"] = [
            _labelled(_map(claim, f"spec.volumeClaimTemplates[{index}]"), labels)
            for index, claim in enumerate(spec["volumeClaimTemplates"])
        ]
    if changed:
        injected["spec"] = {**spec, **changed}
    return injected


def _labelled(holder: JsonObject, labels: Mapping[str, str]) -> JsonObject:
    metadata = holder.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    present = metadata.get("labels")
    present = present if isinstance(present, dict) else {}
    return {**holder, "metadata": {**metadata, "labels": {**present, **labels}}}


def _map(value: object, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise LabelError(f"{path} must be a map")
    return value
