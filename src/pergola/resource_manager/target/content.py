"""The content of an object: what an update of its manifest can change."""

import hashlib
from typing import Final

import orjson

from pergola.api.objects import JsonObject, annotations_of, labels_of, owner_references_of

_APART: Final = frozenset({"metadata", "status", "apiVersion", "kind"})


def content_of(obj: JsonObject) -> JsonObject:
    """Return an object without its identity, metadata and status."""
    return {name: value for name, value in obj.items() if name not in _APART}


def content_digest(obj: JsonObject) -> bytes:
    """Return a digest that changes if and only if an update could revert the edit."""
    essence = {
        "content": content_of(obj),
        "labels": labels_of(obj),
        "annotations": annotations_of(obj),
        "owners": owner_references_of(obj),
    }
    encoded = orjson.dumps(essence, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(encoded, digest_size=16).digest()
