"""Redaction of data that must not leave the process: the values of Secrets."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from pergola.api.objects import JsonObject, map_at, maps_at, metadata_of

_SECRET_KINDS: Final = ("Secret", "InternalSecret")
_VALUES: Final = ("data", "stringData")
_COPIES: Final = re.compile(
    r"kapp\.k14s\.io/original.*"
    r"|objectset\.rio\.cattle\.io/.*"
    r"|openshift\.io/token-secret\.value"
    r"|.*last-applied.*"
)
"""Annotations in which tools keep a copy of the manifest, or of a part of it."""
_STRUCTURED: Final = re.compile(r"\s*[\[{]|H4sI|UEsD|---")
"""The first characters of JSON, of gzip and zip in base64, and of YAML."""
_SHORTEST_VALUE: Final = 4
_LONGEST_SHOWN: Final = 512


def redacted(obj: JsonObject) -> JsonObject:
    """Return an object for the page, without managed fields and values of Secrets.

    A Secret keeps its keys, each with the length of its value. Copies of its manifest in
    annotations also contain the values: those of known tools are removed, and of those that could
    be one, only the length is kept. The status of a ManagedResource repeats annotations.
    """
    metadata = {name: each for name, each in metadata_of(obj).items() if name != "managedFields"}
    shown = {**obj, "metadata": metadata}
    if resources := maps_at(obj, "status", "resources"):
        listed = [_without_copies(each) if _is_secret(each) else each for each in resources]
        shown["status"] = {**map_at(obj, "status"), "resources": listed}
    if not _is_secret(obj):
        return shown
    if "annotations" in metadata:
        shown["metadata"] = _without_copies(metadata, tuple(_texts(obj)))
    for field in _VALUES:
        if field in obj:
            values = map_at(obj, field)
            shown[field] = {key: _length(each, field) for key, each in values.items()}
    return shown


def _is_secret(obj: JsonObject) -> bool:
    return str(obj.get("kind")) in _SECRET_KINDS


def _without_copies(holder: JsonObject, values: tuple[str, ...] = ()) -> JsonObject:
    """Return a holder of annotations without copies of a Secret.

    Args:
        values: the values of the Secret, in base64 and decoded.
    """
    if "annotations" not in holder:
        return holder
    annotations = {
        name: f"{len(str(text).encode())} bytes" if _may_be_copy(text, values) else text
        for name, text in map_at(holder, "annotations").items()
        if not _COPIES.fullmatch(name)
    }
    return {**holder, "annotations": annotations}


def _may_be_copy(text: object, values: tuple[str, ...]) -> bool:
    return (
        not isinstance(text, str)
        or len(text) > _LONGEST_SHOWN
        or _STRUCTURED.match(text) is not None
        or any(value in text for value in values)
    )


def _texts(secret: JsonObject) -> Iterator[str]:
    """Yield the values of a Secret as an annotation may contain them: encoded, and decoded."""
    for field in _VALUES:
        for value in map_at(secret, field).values():
            if not isinstance(value, str) or len(value) < _SHORTEST_VALUE:
                continue
            yield value
            if field == "stringData":
                yield base64.b64encode(value.encode()).decode()
                continue
            try:
                text = base64.b64decode(value, validate=True).decode().strip()
            except ValueError:
                continue
            if len(text) >= _SHORTEST_VALUE:
                yield text


def _length(value: Any, field: str) -> str:
    text = value if isinstance(value, str) else ""
    if field == "data":
        try:
            return f"{len(base64.b64decode(text, validate=True))} bytes"
        except (binascii.Error, ValueError):
            return "not valid base64"
    return f"{len(text.encode())} bytes"
