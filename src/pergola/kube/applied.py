"""A check, from the live object alone, whether a server-side apply would change anything.

The managed fields of an object record what a manager applied before. An apply changes something if
a value differs, or if the manager owns a field that it no longer applies, which the server would
remove.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.kube.applied_atomic import has_more_inside, more_inside
from pergola.kube.equality.differences import Difference, named
from pergola.kube.patches import is_void

_FIELD: Final = "f:"
_ITEM: Final = "k:"
_VALUE: Final = "v:"
_ITSELF: Final = "."


def is_applied(desired: JsonObject, live: JsonObject, manager: str) -> bool:
    """Return whether applying an object as this manager would leave it as it is.

    In doubt the answer is no: an apply that changes nothing costs only one request. Values that the
    server rewrites, such as `1` for `1000m`, are such a case.
    """
    owned = _owned(live, manager)
    return (
        owned is not None
        and _contains(live, desired)
        and not _owns_more(owned, desired)
        and not has_more_inside(owned, live, desired)
    )


def changes(desired: JsonObject, live: JsonObject, manager: str) -> Iterator[Difference]:
    """Yield the fields that applying an object as this manager would change.

    Yield none if the manager would only take over the fields as they are. In each difference, `one`
    is live and `other` desired.
    """
    yield from _lacking(live, desired, "")
    owned = _owned(live, manager) or {}
    for path, value in _extra(owned, desired, live, ""):
        yield Difference(path, value, None)
    for atomic in more_inside(owned, live, desired):
        if _contains(atomic.live, atomic.desired):
            yield Difference(*atomic)


def has_manager(live: JsonObject, manager: str) -> bool:
    """Return whether a manager owns fields of an object, through any operation."""
    return any(
        each.get("manager") == manager for each in maps_at(live, "metadata", "managedFields")
    )


def _owned(live: JsonObject, manager: str) -> JsonObject | None:
    for entry in maps_at(live, "metadata", "managedFields"):
        is_apply = entry.get("operation") == "Apply" and not entry.get("subresource")
        if is_apply and entry.get("manager") == manager:
            return map_at(entry, "fieldsV1")
    return None


def _contains(live: JsonValue, desired: JsonValue) -> bool:
    """Return whether a value has all parts of another; lists may have more items in between."""
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(
            _contains(live[name], value) if name in live else is_void(value)
            for name, value in desired.items()
        )
    if isinstance(desired, list):
        return isinstance(live, list) and _has_items(live, desired)
    return type(live) is type(desired) and live == desired


def _has_items(live: list[Any], desired: list[Any]) -> bool:
    if not any(isinstance(item, dict) for item in desired):
        return live == desired
    remaining = iter(live)
    return all(any(_contains(item, each) for item in remaining) for each in desired)


def _lacking(live: JsonValue, desired: JsonValue, path: str) -> Iterator[Difference]:
    """Yield the smallest parts of a value that another one lacks."""
    if _contains(live, desired):
        return
    if isinstance(live, dict) and isinstance(desired, dict):
        for name, value in desired.items():
            if name in live or not is_void(value):
                yield from _lacking(live.get(name), value, f"{path}.{name}".lstrip("."))
    elif isinstance(live, list) and isinstance(desired, list) and all(map(named, desired)):
        yield from _lacking_items(live, desired, path)
    else:
        yield Difference(path, live, desired)


def _lacking_items(live: list[Any], desired: list[Any], path: str) -> Iterator[Difference]:
    found = [
        each
        for item in desired
        for each in _lacking(
            next((other for other in live if named(other) == named(item)), None),
            item,
            f"{path}[{named(item)}]",
        )
    ]
    # Without one, only the order differs.
    yield from found or [Difference(path, live, desired)]


def _extra(
    owned: Mapping[str, Any], desired: JsonValue, live: JsonValue, path: str
) -> Iterator[tuple[str, JsonValue]]:
    """Yield the owned parts that are no longer desired, with their paths and live values."""
    for name, below in owned.items():
        if not _is_extra(name, below, desired):
            continue
        if name.startswith(_FIELD):
            field = name[len(_FIELD) :]
            value = live.get(field) if isinstance(live, dict) else None
            inner = desired.get(field) if isinstance(desired, dict) else None
            yield from _parts(below, inner, value, f"{path}.{field}".lstrip("."))
        elif name.startswith(_ITEM):
            keys = orjson.loads(name[len(_ITEM) :])
            inner, value = (next(_items(each, keys), None) for each in (desired, live))
            yield from _parts(below, inner, value, f"{path}[{', '.join(map(str, keys.values()))}]")
        else:
            yield path, live


def _parts(
    below: Mapping[str, Any], desired: JsonValue, live: JsonValue, path: str
) -> Iterator[tuple[str, JsonValue]]:
    if desired is None:
        yield path, live
    else:
        yield from _extra(below, desired, live, path)


def _owns_more(owned: Mapping[str, Any], desired: JsonValue) -> bool:
    return any(_is_extra(name, below, desired) for name, below in owned.items())


def _is_extra(name: str, below: Mapping[str, Any], desired: JsonValue) -> bool:
    """Return whether an owned field, item or value is no longer desired, or a part of it."""
    if name == _ITSELF:
        return False
    if name.startswith(_VALUE):
        value = orjson.loads(name[len(_VALUE) :])
        return not isinstance(desired, list) or value not in desired
    if name.startswith(_FIELD):
        field = name[len(_FIELD) :]
        return (
            not isinstance(desired, dict)
            or field not in desired
            or _owns_more(below, desired[field])
        )
    if name.startswith(_ITEM):
        keys = orjson.loads(name[len(_ITEM) :])
        item = next(_items(desired, keys), None)
        return item is None or _owns_more(below, item)
    return True


def _items(desired: JsonValue, keys: Mapping[str, JsonValue]) -> Iterator[JsonObject]:
    """Yield the items with these keys; a key that the server defaulted may be absent."""
    for item in desired if isinstance(desired, list) else ():
        if isinstance(item, dict) and all(item.get(k, v) == v for k, v in keys.items()):
            yield item
