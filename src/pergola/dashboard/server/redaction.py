"""Redaction of data that must not leave the process: the values of Secrets."""

import base64
import binascii
from typing import Any, Final

from pergola.api.objects import JsonObject, map_at, metadata_of

_SECRET_KINDS: Final = ("Secret", "InternalSecret")
_VALUES: Final = ("data", "stringData")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def redacted(obj: JsonObject) -> JsonObject:
    """Return an object for the page, without managed fields and values of Secrets.

    A Secret keeps its keys, each with the length of its value. A copy of the manifest in an
    annotation also contains the values, and is removed.
    """
    metadata = {name: each for name, each in metadata_of(obj).items() if name != "managedFields"}
    shown = {**obj, "metadata": metadata}
    if str(obj.get("kind")) not in _SECRET_KINDS:
        return shown
    annotations = map_at(obj, "metadata", "annotations")
    metadata["annotations"] = {k: v for k, v in annotations.items() if k != _LAST_APPLIED}
    for field in _VALUES:
        if field in obj:
            values = map_at(obj, field)
            shown[field] = {key: _length(each, field) for key, each in values.items()}
    return shown


def _length(value: Any, field: str) -> str:
    text = value if isinstance(value, str) else ""
    if field == "data":
        try:
            return f"{len(base64.b64decode(text, validate=True))} bytes"
        except (binascii.Error, ValueError):
            return "not valid base64"
    return f"{len(text.encode())} bytes"
