"""Whether an update would change anything (spec 10 B7).

The API server fills in defaults, counts `1.0` as `1` and `1000m` as `1`. An object that was applied
therefore never equals its manifest to the letter. Here it does, if nobody edited it.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import orjson

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    annotations_of,
    finalizers_of,
    labels_of,
    owner_references_of,
)
from pergola.resource_manager.controllers.managed_resource.defaults import (
    ANY,
    DEFAULTS,
    Derived,
    Node,
    is_quantity_map,
    same_quantity,
)

_SECRET: Final = GroupKind("", "Secret")
_APART: Final = frozenset({"metadata", "status", "apiVersion", "kind"})


def needs_update(live: JsonObject, merged: JsonObject) -> bool:
    """Whether sending `merged` would change the live object.

    For kinds whose defaults are not known, a field that only the live object has counts as a
    difference.
    """
    if labels_of(live) != labels_of(merged) or annotations_of(live) != annotations_of(merged):
        return True
    if owner_references_of(live) != owner_references_of(merged):
        return True
    kind = GroupVersionKind.of(merged).group_kind
    if kind == _SECRET:
        merged = _with_encoded_data(merged)
    return not _same_map(_content(live), _content(merged), DEFAULTS.get(kind, {}))


def content_digest(obj: JsonObject) -> bytes:
    """Changes exactly when somebody edits something that an update could revert."""
    essence = {
        "content": _content(obj),
        "labels": labels_of(obj),
        "annotations": annotations_of(obj),
        "owners": owner_references_of(obj),
        "finalizers": finalizers_of(obj),
    }
    encoded = orjson.dumps(essence, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _content(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in _APART}


def _with_encoded_data(secret: JsonObject) -> JsonObject:
    """`stringData` as the server stores it: encoded in `data`, over what is there."""
    plain = secret.get("stringData")
    if not isinstance(plain, dict) or not plain:
        return secret
    import base64

    data = secret.get("data") or {}
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
    without = {name: value for name, value in secret.items() if name != "stringData"}
    return {**without, "data": {**data, **encoded}}


def _same_map(
    live: Mapping[str, JsonValue], merged: Mapping[str, JsonValue], node: Mapping[str, Node]
) -> bool:
    for name, wanted in merged.items():
        if name not in live:
            if not _is_empty(wanted):
                return False
        elif not _same(live[name], wanted, node.get(name, node.get("*")), name):
            return False
    return all(
        name in merged or _is_default(value, node.get(name), merged, live)
        for name, value in live.items()
    )


def _same(live: JsonValue, wanted: JsonValue, node: Node, name: str) -> bool:
    if isinstance(wanted, dict) and isinstance(live, dict):
        if is_quantity_map(name):
            return live.keys() == wanted.keys() and all(
                same_quantity(live[key], wanted[key]) for key in live
            )
        return _same_map(live, wanted, node if isinstance(node, dict) else {})
    if isinstance(wanted, list) and isinstance(live, list):
        return len(live) == len(wanted) and all(
            _same(one, other, node, name) for one, other in zip(live, wanted, strict=True)
        )
    if wanted is None:
        # A null asks for the default.
        return _is_empty(live) or _is_default(live, node, {}, {})
    if isinstance(live, bool) or isinstance(wanted, bool):
        return live is wanted
    if live == wanted:
        return True
    return is_quantity_map(name) and same_quantity(live, wanted)


def _is_default(
    value: JsonValue,
    node: Node,
    merged: Mapping[str, JsonValue],
    live: Mapping[str, JsonValue],
) -> bool:
    """Whether a value that only the live object has is what the server fills in."""
    if node is ANY or _is_empty(value):
        return True
    if isinstance(node, Derived):
        return node.fits(value, {**live, **merged})
    if isinstance(value, dict):
        return isinstance(node, dict) and _same_map(value, {}, node)
    return node is not None and not isinstance(node, dict) and value == node


def _is_empty(value: JsonValue) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
