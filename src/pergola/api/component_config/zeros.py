"""Zero values of Go in configuration files.

Go code that writes a configuration serializes a struct: a field without a value becomes `0s`, `""`
or `0`. Where the original then uses its default, so does Pergola. Optional fields are pointers in
Go, and absent if they have no value, so their zeros are real values.
"""

from typing import Final

import msgspec.inspect as types
from msgspec import Meta

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration

ZERO_IS_UNSET: Final = Meta(extra={"zero": "unset"})
"""Facet of a field whose zero means its default."""


def without_zeros(type_: type[Value], value: JsonObject) -> JsonObject:
    """Return the configuration without the zeros that mean a default."""
    return _struct(types.type_info(type_), value)


def _struct(info: types.Type, value: JsonObject) -> JsonObject:
    if not isinstance(info, types.StructType):
        return value
    declared = {field.encode_name: field.type for field in info.fields}
    return {
        name: _field(declared[name], entry) if name in declared else entry
        for name, entry in value.items()
        if name not in declared or not _is_unset(declared[name], entry)
    }


def _field(declared: types.Type, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        for alternative in _alternatives(declared):
            value = _struct(alternative, value)
    return value


def _is_unset(declared: types.Type, value: JsonValue) -> bool:
    if not isinstance(declared, types.Metadata) or declared.extra != ZERO_IS_UNSET.extra:
        return False
    if isinstance(value, str):
        kinds = _alternatives(declared)
        is_duration = any(isinstance(k, types.CustomType) and k.cls is Duration for k in kinds)
        return _is_zero(value) if is_duration else not value
    return value == 0 and not isinstance(value, bool)


def _is_zero(duration: str) -> bool:
    try:
        return not parse_duration(duration)
    except DurationError:
        return False


def _alternatives(declared: types.Type) -> list[types.Type]:
    match declared:
        case types.Metadata():
            return _alternatives(declared.type)
        case types.UnionType():
            return [one for entry in declared.types for one in _alternatives(entry)]
    return [declared]
