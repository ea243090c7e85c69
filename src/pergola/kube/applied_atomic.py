"""Parts of an object that an apply replaces as a whole: atomic lists and maps.

The managed fields have no entries below them, so items and fields that are no longer desired are
found by their values: the server adds defaults there, but neither items nor structures.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue
from pergola.kube.discovery import BUILT_IN_GROUPS

_FIELD: Final = "f:"
_ITEM: Final = "k:"
_DEFAULTS: Final[Mapping[str, JsonValue]] = {
    "apiGroup": "rbac.authorization.k8s.io",
    "apiVersion": "v1",
    "divisor": "0",
    "expirationSeconds": 3600,
    "protocol": "TCP",
    "scope": "*",
}
"""Fields that servers set in atomic parts of their own kinds."""


class Atomic(NamedTuple):
    """A part that differs."""

    path: str
    live: JsonValue
    desired: JsonValue


def has_more_inside(owned: Mapping[str, Any], live: JsonObject, desired: JsonObject) -> bool:
    """Return whether an atomic part has items or fields that are no longer desired.

    Args:
        owned: The managed fields of the manager that applies.
    """
    return any(True for _ in more_inside(owned, live, desired))


def more_inside(
    owned: Mapping[str, Any], live: JsonObject, desired: JsonObject
) -> Iterator[Atomic]:
    """Yield the atomic parts that have items or fields that are no longer desired.

    Fields of custom resources that are not structures may be defaults: they are not compared.
    """
    is_known = GroupVersionKind.of(desired).group in BUILT_IN_GROUPS
    for part in _atomic(owned, live, desired, ""):
        if _has_more(part.live, part.desired, is_known=is_known):
            yield part


def _atomic(
    owned: Mapping[str, Any], live: JsonValue, desired: JsonValue, path: str
) -> Iterator[Atomic]:
    """Yield the parts that a manager owns as a whole and both sides have."""
    for name, below in owned.items():
        if name.startswith(_FIELD) and isinstance(live, dict) and isinstance(desired, dict):
            field = name.removeprefix(_FIELD)
            inner = f"{path}.{field}".lstrip(".")
            one, other = live.get(field), desired.get(field)
        elif name.startswith(_ITEM):
            keys = orjson.loads(name.removeprefix(_ITEM))
            inner = f"{path}[{', '.join(map(str, keys.values()))}]"
            one, other = _item(live, keys), _item(desired, keys)
        else:
            continue
        if below:
            yield from _atomic(below, one, other, inner)
        elif isinstance(one, dict | list) and isinstance(other, dict | list):
            yield Atomic(inner, one, other)


def _item(items: JsonValue, keys: Mapping[str, JsonValue]) -> JsonValue:
    """Return the item with these keys; one that the server defaulted may be absent."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and all(item.get(k, v) == v for k, v in keys.items()):
            return item
    return None


def _has_more(live: JsonValue, desired: JsonValue, *, is_known: bool) -> bool:
    if isinstance(live, list) and isinstance(desired, list):
        return len(live) != len(desired) or any(
            _has_more(one, other, is_known=is_known)
            for one, other in zip(live, desired, strict=True)
        )
    if isinstance(live, dict) and isinstance(desired, dict):
        return any(
            _has_more(value, desired[name], is_known=is_known)
            if name in desired
            else _is_extra(name, value, is_known=is_known)
            for name, value in live.items()
        )
    return False


def _is_extra(name: str, value: JsonValue, *, is_known: bool) -> bool:
    if isinstance(value, dict | list):
        return bool(value)
    return is_known and _DEFAULTS.get(name) != value
