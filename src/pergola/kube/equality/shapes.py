"""Equality of values whose JSON differs but whose meaning is the same (spec 10 B7).

A shape describes the fields of a kind as far as they need describing. In the shape of a map, the
value of a field is one of

- a plain JSON value: the default; a field that is absent reads as this value;
- a map: the fields of an object, or of each object in a list. A missing object equals one whose
  fields all have their defaults;
- one of the classes below.

A field without a shape is compared verbatim, except that an empty list counts as absent.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.quantities import QuantityError, equal_quantities

Shape: TypeAlias = "JsonValue | Mapping[str, Shape] | _Special"
Beside: TypeAlias = Mapping[str, JsonValue]
"""The fields of the object that contains a field."""


class _Special:
    """A shape that is not plain data."""


class _Marker(_Special):
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


EXACT: Final = _Marker("EXACT")
"""Compared verbatim; only `null` counts as absent, and `1.0` as `1`."""

SERVER: Final = _Marker("SERVER")
"""Set by the server or by a controller if the manifest does not set it."""

ASSIGNED: Final = _Marker("ASSIGNED")
"""Like `SERVER`, but also if the manifest sets it to zero or empty."""

QUANTITY: Final = _Marker("QUANTITY")
"""An amount: `1` is `1000m`."""

QUANTITIES: Final = _Marker("QUANTITIES")
"""Amounts by name."""

BASE64: Final = _Marker("BASE64")
"""Encoded bytes, wherever the encoding breaks its lines."""

TEXTS: Final[Mapping[str, Shape]] = {}
"""A map with arbitrary keys; an empty one counts as absent."""

INJECTED: Final = _Marker("INJECTED")
"""Encoded bytes that another controller injects if the manifest does not set them."""

PLAIN: Final = _Marker("PLAIN")


@dataclass(frozen=True, slots=True)
class Default(_Special):
    """A default for a value that needs a shape of its own."""

    value: JsonValue
    shape: Shape


@dataclass(frozen=True, slots=True)
class Derived(_Special):
    """A default that depends on sibling fields; None if there is none."""

    value: Callable[[Beside], JsonValue]


@dataclass(frozen=True, slots=True)
class Present(_Special):
    """An object whose meaning differs between empty and absent."""

    fields: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Each(_Special):
    """A map with arbitrary keys and values of one shape."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Filled(_Special):
    """An object with defaults that a rule for a single field cannot express.

    Attributes:
        restore: returns the desired object with what others set in the live one, beyond `fields`.
    """

    fill: Callable[[JsonObject], JsonObject]
    fields: Mapping[str, Shape]
    restore: Callable[[JsonObject, JsonObject], JsonObject] | None = None


def same_fields(live: Beside, desired: Beside, fields: Mapping[str, Shape]) -> bool:
    """Return whether two objects mean the same."""
    for name, value in desired.items():
        present = live.get(name)
        if type(value) is str and value == present:
            continue  # identical values are equal in any shape
        if not same_field(present, value, fields.get(name, PLAIN), live, desired):
            return False
    return all(
        same_field(live[name], None, fields.get(name, PLAIN), live, desired)
        for name in live.keys() - desired.keys()
    )


def same(live: JsonValue, desired: JsonValue, shape: Shape) -> bool:
    """Return whether two values mean the same; None means absent."""
    if live is None or desired is None:
        return live is desired or _says_nothing(live if desired is None else desired, shape)
    if isinstance(live, list):
        return (
            isinstance(desired, list)
            and len(live) == len(desired)
            and all(same(one, other, shape) for one, other in zip(live, desired, strict=True))
        )
    if isinstance(live, dict):
        return isinstance(desired, dict) and _same_map(live, desired, shape)
    return not isinstance(desired, dict | list) and _same_scalar(live, desired, shape)


def same_field(
    live: JsonValue, desired: JsonValue, shape: Shape, live_beside: Beside, desired_beside: Beside
) -> bool:
    """Return whether two values of a field mean the same; None means absent.

    Args:
        shape: Of the field; a plain JSON value is its default.
        live_beside: The fields around the live value.
        desired_beside: The fields around the desired value.
    """
    if not isinstance(shape, _Special | Mapping):
        return _same_or_default(live, desired, shape, PLAIN)
    if isinstance(shape, Derived):
        live = shape.value(live_beside) if live is None else live
        desired = shape.value(desired_beside) if desired is None else desired
        return same(live, desired, PLAIN)
    if isinstance(shape, Default):
        return _same_or_default(live, desired, shape.value, shape.shape)
    if shape is SERVER:
        return desired is None or same(live, desired, PLAIN)
    if shape is ASSIGNED or shape is INJECTED:
        return not desired or same(live, desired, BASE64 if shape is INJECTED else PLAIN)
    return same(live, desired, shape)


def _same_or_default(live: JsonValue, desired: JsonValue, default: JsonValue, shape: Shape) -> bool:
    live = default if live is None else live
    return same(live, default if desired is None else desired, shape)


def _says_nothing(value: JsonValue, shape: Shape) -> bool:
    """Return whether a value that only one side has is equivalent to its absence."""
    if isinstance(value, list):
        return not value and shape is not EXACT
    if not isinstance(value, dict):
        return False
    if isinstance(shape, Filled):
        return same_fields(shape.fill(value), shape.fill({}), shape.fields)
    if isinstance(shape, Mapping):
        return same_fields(value, {}, shape)
    return not value and (isinstance(shape, Each) or shape is QUANTITIES)


def _same_map(live: JsonObject, desired: JsonObject, shape: Shape) -> bool:
    if isinstance(shape, Mapping):
        return same_fields(live, desired, shape)
    if isinstance(shape, Present):
        return same_fields(live, desired, shape.fields)
    if isinstance(shape, Filled):
        return same_fields(shape.fill(live), shape.fill(desired), shape.fields)
    each = shape_of_each(shape)
    names = live.keys() | desired.keys()
    return all(same(live.get(name), desired.get(name), each) for name in names)


def shape_of_each(shape: Shape) -> Shape:
    """Return the shape of the values in a map whose keys have no shapes of their own."""
    if isinstance(shape, Each):
        return shape.shape
    if shape is QUANTITIES:
        return QUANTITY
    return shape if shape is EXACT or shape is BASE64 else PLAIN


def _same_scalar(live: JsonValue, desired: JsonValue, shape: Shape) -> bool:
    if isinstance(live, bool) or isinstance(desired, bool):
        return live is desired
    if live == desired:
        return True
    if shape is QUANTITY:
        return _same_quantity(live, desired)
    return shape is BASE64 and _bytes(live) == _bytes(desired) is not None


def _same_quantity(live: JsonValue, desired: JsonValue) -> bool:
    if not isinstance(live, str | int | float) or not isinstance(desired, str | int | float):
        return False
    try:
        return equal_quantities(live, desired)
    except QuantityError:
        return False


def _bytes(value: JsonValue) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
