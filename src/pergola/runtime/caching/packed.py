"""Whole objects in a cache, packed: a fraction of the memory, and no reader can change them."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from pergola.api.objects import JsonObject, labels_of


class Packed(NamedTuple):
    """An object as JSON text, with the labels by which it is found."""

    labels: Mapping[str, str]
    text: bytes

    def unpack(self) -> JsonObject:
        """Return the object; each call returns another copy."""
        obj: JsonObject = orjson.loads(self.text)
        return obj


def packed(obj: JsonObject) -> Packed:
    """Return an object packed."""
    return Packed(labels_of(obj), orjson.dumps(obj))


def packed_metadata(obj: JsonObject) -> Packed:
    """Return the metadata of an object packed."""
    return packed(metadata_part(obj))


def metadata_part(obj: JsonObject) -> JsonObject:
    """Return an object as a request for its metadata only returns it."""
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata") if name in obj}
