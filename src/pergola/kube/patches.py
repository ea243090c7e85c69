"""What changes one object into another: JSON merge patches (RFC 7386), JSON patches (RFC 6902).

Nothing here is copied deeply: patches and results share what did not change with their sources.
"""

import orjson

from pergola.api.objects import JsonObject, JsonValue


def merge_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """The smallest merge patch from `old` to `new`; empty if they are the same.

    Lists are replaced as a whole. A merge patch cannot say null: what is null in `new` is absent
    afterwards, as the API server drops most nulls anyway.
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
            patch[name] = merge_patch(before, value)
        else:
            patch[name] = value
    return patch


def apply_merge_patch(obj: JsonObject, patch: JsonObject) -> JsonObject:
    """The object after a merge patch; `obj` itself stays as it is."""
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


def json_patch(old: JsonObject, new: JsonObject) -> list[JsonObject]:
    """Operations (`add`, `remove`, `replace`) that change `old` into `new`; empty if the same.

    In lists, what is equal at both ends stays; between, entries are compared one by one.
    """
    operations: list[JsonObject] = []
    _diff_maps(old, new, "", operations)
    return operations


def escape_pointer(name: str) -> str:
    """A map key as one step of a JSON pointer: `a/b~c` → `a~1b~0c`."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON: `1` is `1.0`, but not `true` as in Python."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict | list):
        return _same_bytes(one, other) or _same_types(one, other)
    return isinstance(one, bool) == isinstance(other, bool)


def _same_bytes(one: JsonValue, other: JsonValue) -> bool:
    """Whether equal values also encode equally: quick to ask, and nearly always so."""
    try:
        return orjson.dumps(one) == orjson.dumps(other)
    except orjson.JSONEncodeError:
        return False


def _same_types(one: JsonValue, other: JsonValue) -> bool:
    """Whether booleans stand in the same places of equal values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_types(item, other[name]) for name, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return all(map(_same_types, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def _diff(old: JsonValue, new: JsonValue, path: str, operations: list[JsonObject]) -> None:
    """Adds the operations for two values that are not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        _diff_maps(old, new, path, operations)
    elif isinstance(old, list) and isinstance(new, list):
        _diff_lists(old, new, path, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": new})


def _diff_maps(old: JsonObject, new: JsonObject, path: str, operations: list[JsonObject]) -> None:
    operations += [_removal(f"{path}/{escape_pointer(name)}") for name in old if name not in new]
    for name, value in new.items():
        if name not in old:
            operations.append(_addition(f"{path}/{escape_pointer(name)}", value))
        elif not same(old[name], value):
            _diff(old[name], value, f"{path}/{escape_pointer(name)}", operations)


def _diff_lists(
    old: list[JsonValue], new: list[JsonValue], path: str, operations: list[JsonObject]
) -> None:
    start, old_end, new_end = _changed(old, new)
    paired = min(old_end, new_end)
    for index in range(start, paired):
        if not same(old[index], new[index]):
            _diff(old[index], new[index], f"{path}/{index}", operations)
    # From the end, so that no removal shifts another one.
    operations += [_removal(f"{path}/{i}") for i in range(old_end - 1, paired - 1, -1)]
    operations += [_addition(f"{path}/{i}", new[i]) for i in range(paired, new_end)]


def _changed(old: list[JsonValue], new: list[JsonValue]) -> tuple[int, int, int]:
    """Between which index and which two ends the lists differ."""
    start, old_end, new_end = 0, len(old), len(new)
    while start < min(old_end, new_end) and same(old[start], new[start]):
        start += 1
    while start < min(old_end, new_end) and same(old[old_end - 1], new[new_end - 1]):
        old_end, new_end = old_end - 1, new_end - 1
    return start, old_end, new_end


def _removal(path: str) -> JsonObject:
    return {"op": "remove", "path": path}


def _addition(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}
