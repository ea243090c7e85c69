"""JSON merge patches (RFC 7386), steps of JSON pointers, and equality of JSON values.

Nothing is copied deeply: patches and results share unchanged parts with their inputs.
"""

import orjson

from pergola.api.objects import JsonObject, JsonValue


def merge_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the smallest merge patch from `old` to `new`; empty if they are the same.

    Lists are replaced as a whole. A merge patch cannot set null: a null in `new` removes the field,
    which is harmless because the API server drops most nulls anyway.
    """
    patch: JsonObject = {}
    for name, before in old.items():
        if new.get(name) is None and (before is not None or name not in new):
            patch[name] = None
    for name, value in new.items():
        before = old.get(name)
        if value is None or same(before, value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            # Empty if they differ in nulls only.
            if inner := merge_patch(before, value):
                patch[name] = inner
        else:
            patch[name] = value
    return patch


def apply_merge_patch(obj: JsonObject, patch: JsonObject) -> JsonObject:
    """Return the object after a merge patch; `obj` itself does not change."""
    result = dict(obj)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = apply_merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


def escape_pointer(name: str) -> str:
    """Escape a map key as one step of a JSON pointer: `a/b~c` → `a~1b~0c`."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are equal as JSON: `1` equals `1.0`, but not `true`."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict | list):
        return _same_bytes(one, other) or _same_types(one, other)
    return isinstance(one, bool) == isinstance(other, bool)


def is_void(value: JsonValue) -> bool:
    """Return whether a value is null, an empty list, or a map of only such values.

    An API server may drop such a value from stored objects.
    """
    if isinstance(value, dict):
        return all(map(is_void, value.values()))
    return value is None or value == []


def _same_bytes(one: JsonValue, other: JsonValue) -> bool:
    """Return whether equal values also encode equally: a quick check that rarely fails."""
    try:
        return orjson.dumps(one) == orjson.dumps(other)
    except orjson.JSONEncodeError:
        return False


def _same_types(one: JsonValue, other: JsonValue) -> bool:
    """Return whether equal values have booleans in the same places."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_types(item, other[name]) for name, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return all(map(_same_types, one, other))
    return isinstance(one, bool) == isinstance(other, bool)
