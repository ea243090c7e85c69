"""Differences between two values, by the paths of their fields.

Lists are compared regardless of order. Items without an equal on the other side are paired by name,
or by position if they have no names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
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

_NAMES: Final = ("mountPath", "name", "alert", "record", "type", "key")

_Labelled = tuple[str, JsonValue]
_ABSENT: Final[_Labelled] = ("", None)


class Difference(NamedTuple):
    """A field with different values; None if a side lacks it.

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
        one: As a server has it. Values that only this side has are equal if a server sets them
            itself.
        other: As a manifest has it.
        shape: Of both.
        path: Their path.
    """
    if same(one, other, shape):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        yield from _of_maps(one, other, shape, path)
    elif isinstance(one, list) and isinstance(other, list):
        yield from _of_lists(one, other, shape, path)
    else:
        yield Difference(path, one, other)


def named(item: JsonValue) -> str:
    """Return the name of an item in its list; empty if it has none."""
    if not isinstance(item, dict):
        return ""
    names = (item.get(field) for field in _NAMES)
    return next((name for name in names if isinstance(name, str)), "")


def _of_maps(one: JsonObject, other: JsonObject, shape: Shape, path: str) -> Iterator[Difference]:
    if isinstance(shape, Filled):
        one, other = shape.fill(one), shape.fill(other)
    for name in sorted(one.keys() | other.keys()):
        field = _shape_of_field(shape, name)
        left, right = one.get(name), other.get(name)
        if not same_field(left, right, field, one, other):
            yield from _of_field(left, right, _shape_of_value(field), f"{path}.{name}".lstrip("."))


def _of_field(one: JsonValue, other: JsonValue, shape: Shape, path: str) -> Iterator[Difference]:
    """Yield the differences within a field that is known to differ."""
    found = list(differences(one, other, shape, path))
    is_partial = isinstance(one, dict | list) and isinstance(other, dict | list)
    if found or not is_partial:
        yield from found or [Difference(path, one, other)]


def _of_lists(
    one: Sequence[JsonValue], other: Sequence[JsonValue], shape: Shape, path: str
) -> Iterator[Difference]:
    only_one, only_other = _unmatched(one, other, shape)
    items = [item for _, item in (*only_one, *only_other)]
    if any(isinstance(item, dict | list) for item in items):
        have_names = all(map(named, items))
        left, right = (_labelled(rest, by_name=have_names) for rest in (only_one, only_other))
        pairs = (
            _by_label(left, right) if have_names else zip_longest(left, right, fillvalue=_ABSENT)
        )
        for (label, item), (position, counterpart) in pairs:
            yield from differences(item, counterpart, shape, f"{path}[{label or position}]")
    elif items:
        extra, missing = [item for _, item in only_one], [item for _, item in only_other]
        yield Difference(path, extra or None, missing or None)


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


def _labelled(items: Sequence[tuple[int, JsonValue]], *, by_name: bool) -> list[_Labelled]:
    """Return items with their names, numbered if a name repeats, or their indices if unnamed."""
    if not by_name:
        return [(str(index), item) for index, item in items]
    seen: Counter[str] = Counter()
    labelled: list[_Labelled] = []
    for _, item in items:
        name = named(item)
        seen[name] += 1
        labelled.append((name if seen[name] == 1 else f"{name} {seen[name]}", item))
    return labelled


def _by_label(
    one: Sequence[_Labelled], other: Sequence[_Labelled]
) -> Iterator[tuple[_Labelled, _Labelled]]:
    left, right = dict(one), dict(other)
    for label in dict.fromkeys([*left, *right]):
        yield (label, left.get(label)), (label, right.get(label))


def _shape_of_field(shape: Shape, name: str) -> Shape:
    if isinstance(shape, Filled | Present):
        shape = shape.fields
    return shape.get(name, PLAIN) if isinstance(shape, Mapping) else shape_of_each(shape)


def _shape_of_value(shape: Shape) -> Shape:
    """Return the shape of the value itself, for a field that may have a default."""
    if isinstance(shape, Default):
        return shape.shape
    is_default = shape is None or isinstance(shape, str | int | float | list)
    return PLAIN if is_default else shape
