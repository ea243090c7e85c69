"""Values that others set in an object, and that an update without them would erase.

The same shapes decide whether such a value counts as a difference (`pergola.kube.equality.same`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.equality.differences import named
from pergola.kube.equality.shapes import (
    ASSIGNED,
    INJECTED,
    SERVER,
    Default,
    Each,
    Filled,
    Present,
    Shape,
    same,
)


def with_assigned(desired: JsonObject, live: JsonObject, shape: Shape) -> JsonObject:
    """Return the desired object with the values that others set in the live one.

    A value that the desired object has wins. The arguments are not modified.
    """
    if "spec" not in desired and isinstance(shape, Mapping) and isinstance(live.get("spec"), dict):
        completed = _complete({**desired, "spec": {}}, live, shape)
        return completed if completed["spec"] else desired
    return _complete(desired, live, shape)


def _complete(desired: JsonObject, live: JsonObject, shape: Shape) -> JsonObject:
    fields = _fields_of(shape)
    completed = desired if fields is None else _map(desired, live, fields)
    if isinstance(shape, Filled) and shape.restore is not None:
        return shape.restore(completed, live)
    return completed


def _map(desired: JsonObject, live: JsonObject, fields: Mapping[str, Shape]) -> JsonObject:
    if _is_reference(fields) and not _refers_to(desired, live):
        return desired
    result = desired
    for name, shape in fields.items():
        present = live.get(name)
        if present is None:
            continue
        given = desired.get(name)
        completed = _field(given, present, shape, desired)
        if completed is not given:
            result = {**result, name: completed}
    return result


def _field(desired: JsonValue, live: JsonValue, shape: Shape, beside: JsonObject) -> JsonValue:
    if shape is SERVER:
        return live if desired is None else desired
    if shape is ASSIGNED:
        return desired or live
    if shape is INJECTED:
        # A server whose certificate is not verified may have no authority.
        return desired if desired or beside.get("insecureSkipTLSVerify") else live
    shape = shape.shape if isinstance(shape, Default) else shape
    if isinstance(live, dict):
        return _object(desired, live, shape)
    if isinstance(live, list) and isinstance(desired, list):
        return _list(desired, live, shape)
    return desired


def _object(desired: JsonValue, live: JsonObject, shape: Shape) -> JsonValue:
    if isinstance(shape, Each):
        if not isinstance(desired, dict):
            return desired
        return _map(desired, live, dict.fromkeys(desired, shape.shape))
    if isinstance(desired, dict):
        return _complete(desired, live, shape)
    if desired is None and isinstance(shape, Mapping) and _is_reference(shape):
        return _map({}, live, shape) or None
    return desired


def _list(desired: list[JsonValue], live: Sequence[JsonValue], shape: Shape) -> JsonValue:
    """Complete the items by their names, if each name occurs once."""
    before = {named(item): item for item in live if isinstance(item, dict)}
    counts = Counter(named(item) for item in (*desired, *live))
    completed = [
        _complete(item, before[name], shape)
        if isinstance(item, dict) and (name := named(item)) in before and counts[name] == 2
        else item
        for item in desired
    ]
    unchanged = all(one is other for one, other in zip(completed, desired, strict=True))
    return desired if unchanged else completed


def _fields_of(shape: Shape) -> Mapping[str, Shape] | None:
    if isinstance(shape, Filled | Present):
        return shape.fields
    return shape if isinstance(shape, Mapping) else None


def _is_reference(fields: Mapping[str, Shape]) -> bool:
    """Return whether the server completes the object as a whole: a reference to another object."""
    return bool(fields) and all(shape is SERVER for shape in fields.values())


def _refers_to(desired: JsonObject, live: JsonObject) -> bool:
    return all(same(live.get(name), value, {}) for name, value in desired.items())
