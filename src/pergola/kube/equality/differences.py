"""Differences between two values, by the paths of their fields.

Lists are compared without regard to order: named items by their names, other items one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.equality.shapes import (
    PLAIN,
    Default,
    Filled,
    Present,
    Shape,
    same,
    same_field,
    shape_of_each,
)

_NAMES: Final = ("name", "mountPath", "type", "key")


class Difference(NamedTuple):
    """A field with different values; None where a side does not have it.

    Attributes:
        path: Such as `spec.ports[web].port`; an item without a name has its index in `one`.
    """

    path: str
    one: JsonValue
    other: JsonValue


def differences(
    one: JsonValue, other: JsonValue, shape: Shape, path: str = ""
) -> Iterator[Difference]:
    """Yield the smallest parts that differ.

    Args:
        one: As a server has it. What only this side has is equal if a server sets it by itself.
        other: As a manifest has it.
        shape: Of both.
        path: Where they are.
    """
    if same(one, other, shape):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        yield from _of_maps(one, other, shape, path)
    elif isinstance(one, list) and isinstance(other, list):
        yield from _of_lists(one, other, shape, path)
    else:
        yield Difference(path, one, other)


def _of_maps(one: JsonObject, other: JsonObject, shape: Shape, path: str) -> Iterator[Difference]:
    if isinstance(shape, Filled):
        one, other = shape.fill(one), shape.fill(other)
    for name in sorted(one.keys() | other.keys()):
        field = _shape_of_field(shape, name)
        left, right = one.get(name), other.get(name)
        if not same_field(left, right, field, one, other):
            yield from _of_field(left, right, _shape_of_value(field), f"{path}.{name}".lstrip("."))


def _of_field(one: JsonValue, other: JsonValue, shape: Shape, path: str) -> Iterator[Difference]:
    """Yield what differs in a field that is known to differ."""
    found = list(differences(one, other, shape, path))
    is_partial = isinstance(one, dict | list) and isinstance(other, dict | list)
    if found or not is_partial:
        yield from found or [Difference(path, one, other)]


def _of_lists(
    one: Sequence[JsonValue], other: Sequence[JsonValue], shape: Shape, path: str
) -> Iterator[Difference]:
    name = _name_field(one, other)
    if name is not None:
        left, right = _by_name(one, name), _by_name(other, name)
        for key in dict.fromkeys([*left, *right]):
            yield from differences(left.get(key), right.get(key), shape, f"{path}[{key}]")
        return
    only_one, only_other = _unmatched(one, other, shape)
    if any(isinstance(item, dict | list) for _, item in (*only_one, *only_other)):
        yield from _one_by_one(only_one, only_other, shape, path)
    elif only_one or only_other:
        extra, missing = [item for _, item in only_one], [item for _, item in only_other]
        yield Difference(path, extra or None, missing or None)


def _one_by_one(
    one: Sequence[tuple[int, JsonValue]],
    other: Sequence[tuple[int, JsonValue]],
    shape: Shape,
    path: str,
) -> Iterator[Difference]:
    """Yield what differs in items that have no names, in their order."""
    for index in range(max(len(one), len(other))):
        number, left = one[index] if index < len(one) else (None, None)
        position, right = other[index] if index < len(other) else (None, None)
        at = number if number is not None else position
        yield from differences(left, right, shape, f"{path}[{at}]")


def _unmatched(
    one: Sequence[JsonValue], other: Sequence[JsonValue], shape: Shape
) -> tuple[list[tuple[int, JsonValue]], list[tuple[int, JsonValue]]]:
    """Return the items of each side that have no equal on the other, with their indices."""
    rest = list(enumerate(other))
    only_one: list[tuple[int, JsonValue]] = []
    for index, item in enumerate(one):
        equal = next((each for each in rest if same(item, each[1], shape)), None)
        if equal is None:
            only_one.append((index, item))
        else:
            rest.remove(equal)
    return only_one, rest


def _name_field(one: Sequence[JsonValue], other: Sequence[JsonValue]) -> str | None:
    """Return the field that names all items of both lists, each once; None if there is none."""
    for name in _NAMES:
        if all(_is_named(items, name) for items in (one, other)):
            return name
    return None


def _is_named(items: Sequence[JsonValue], name: str) -> bool:
    names = [item.get(name) for item in items if isinstance(item, dict)]
    is_complete = len(names) == len(items) and all(isinstance(each, str) for each in names)
    return is_complete and len(set(map(str, names))) == len(names)


def _by_name(items: Sequence[JsonValue], name: str) -> dict[str, JsonValue]:
    return {str(item[name]): item for item in items if isinstance(item, dict)}


def _shape_of_field(shape: Shape, name: str) -> Shape:
    if isinstance(shape, Filled | Present):
        shape = shape.fields
    return shape.get(name, PLAIN) if isinstance(shape, Mapping) else shape_of_each(shape)


def _shape_of_value(shape: Shape) -> Shape:
    """Return the shape of the value itself, of a field that may have a default."""
    if isinstance(shape, Default):
        return shape.shape
    is_default = shape is None or isinstance(shape, str | int | float | list)
    return PLAIN if is_default else shape
