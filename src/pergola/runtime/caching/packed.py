"""Objects in a cache, packed: a fraction of the memory, and no reader can change them.

Small objects consist mostly of the names of fields and of defaults, so they are compressed with a
dictionary of those. What orjson returns is never kept: it holds on to the buffer that it was
written to, of 4 KiB at least.
"""

import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject, labels_of
from pergola.runtime.caching.common_text import COMMON

_LEVEL: Final = 3
_WINDOW: Final = -13  # 8 KiB, without a header
_MEMORY: Final = 5


def pack(obj: JsonObject) -> bytes:
    """Return an object compressed; equal objects with their keys in one order pack alike."""
    packer = zlib.compressobj(
        _LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, COMMON
    )
    return packer.compress(orjson.dumps(obj)) + packer.flush()


def unpack(content: bytes) -> JsonObject:
    """Return a packed object; each call returns another copy."""
    obj: JsonObject = orjson.loads(zlib.decompressobj(_WINDOW, COMMON).decompress(content))
    return obj


class Packed(NamedTuple):
    """An object with the labels by which it is found."""

    labels: Mapping[str, str]
    content: bytes

    def unpack(self) -> JsonObject:
        """Return the object; each call returns another copy."""
        return unpack(self.content)


def packed(obj: JsonObject) -> Packed:
    """Return an object packed."""
    return Packed(labels_of(obj), pack(obj))


def packed_metadata(obj: JsonObject) -> Packed:
    """Return the metadata of an object packed."""
    return packed(metadata_part(obj))


def metadata_part(obj: JsonObject) -> JsonObject:
    """Return an object as a request for its metadata only returns it."""
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata") if name in obj}
