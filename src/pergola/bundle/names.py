"""Immutable Secrets and ConfigMaps whose names depend on their content (spec 10 §12).

Changed content gets a new object. A workload that names it is therefore rolled out, and pods that
still use the old content keep it until no object names it any longer.
"""

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    metadata_of,
    name_of,
)
from pergola.bundle.errors import InvalidObject, NameTaken

_DIGITS: Final = 8
# The fields with a kind's content, and whether their values are base64.
_FIELDS: Final[Mapping[str, Mapping[str, bool]]] = {
    "Secret": {"data": True, "stringData": False},
    "ConfigMap": {"data": False, "binaryData": True},
}


def make_unique(obj: JsonObject) -> JsonObject:
    """Return a new Secret or ConfigMap: immutable, collectable, with its checksum in the name.

    Users of the old name must be updated to the new one.

    Raises:
        InvalidObject: the object is of another kind, has no name, or has an invalid base64 value.
    """
    name, digits = name_of(obj), checksum(content(obj))[:_DIGITS]
    if not name:
        raise InvalidObject(f"{obj.get('kind')} has no name; a unique name needs one as its prefix")
    metadata = {
        **metadata_of(obj),
        "name": f"{name.removesuffix('-')}-{digits}",
        "labels": {**labels_of(obj), marks.GARBAGE_COLLECTABLE: "true"},
    }
    return {**obj, "metadata": metadata, "immutable": True}


def checksum(data: Mapping[str, bytes]) -> str:
    """Return 64 hex digits for the values, in ascending order of their keys.

    The keys themselves do not count, which other implementations rely on: content with renamed keys
    has the same checksum (`check_same_content` detects that).
    """
    sums = (sha256(data[key]).hexdigest() for key in sorted(data))
    return sha256("".join(sums).encode()).hexdigest()


def content(obj: JsonObject) -> dict[str, bytes]:
    """Return the decoded content of a Secret or ConfigMap; `stringData` overrides `data`.

    Raises:
        InvalidObject: the object is of another kind, or a value is not base64 or not a string.
    """
    gvk = GroupVersionKind.of(obj)
    fields = _FIELDS.get(gvk.kind) if gvk.api_version == "v1" else None
    if fields is None:
        raise InvalidObject(f"{gvk} {Key.of(obj)} is neither a Secret nor a ConfigMap")
    return {
        key: _decode(value, is_base64, f"{gvk.kind} {Key.of(obj)}: {field}[{key}]")
        for field, is_base64 in fields.items()
        for key, value in map_at(obj, field).items()
    }


def check_same_content(existing: JsonObject, desired: JsonObject) -> None:
    """Check that an existing object has the content of the desired one with the same name.

    Raises:
        NameTaken: it has other content and, being immutable, cannot be changed.
    """
    there, here = content(existing), content(desired)
    if there == here:
        return
    what = f"{desired['kind']} {Key.of(desired)}"
    if checksum(there) == checksum(here):
        raise NameTaken(
            f"{what} exists with the same values under other keys ({_list(there)} instead of"
            f" {_list(here)}); unique names do not cover keys, so choose another name"
        )
    different = [key for key in there.keys() | here.keys() if there.get(key) != here.get(key)]
    raise NameTaken(
        f"{what} exists with other content under {_list(different)}; delete it, or choose"
        " another name"
    )


def immutability_patch(existing: JsonObject, desired: JsonObject) -> JsonObject:
    """Return a merge patch that adds the properties set by `make_unique` to an existing object.

    Empty if it lacks neither a label nor its immutability.
    """
    there = labels_of(existing)
    missing = {key: value for key, value in labels_of(desired).items() if there.get(key) != value}
    patch: JsonObject = {"metadata": {"labels": missing}} if missing else {}
    return patch if existing.get("immutable") is True else {**patch, "immutable": True}


def _decode(value: object, is_base64: bool, where: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidObject(f"{where} is not a string")
    if not is_base64:
        return value.encode()
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise InvalidObject(f"{where} is not valid base64") from None


def _list(keys: Mapping[str, bytes] | list[str]) -> str:
    return ", ".join(sorted(keys)) or "no key"
