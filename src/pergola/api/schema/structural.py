"""Conversion of Python types to structural OpenAPI v3 schemas, as CRDs require."""

from functools import cache
from typing import Final

import msgspec.inspect as types

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Object, Scalar, Value
from pergola.api.schema.docstrings import field_descriptions, type_description

_OF_EVERY_OBJECT: Final = {
    "api_version": "The group and version of the schema in which this object is written.",
    "kind": "What this object is.",
}
_PLAIN: Final[dict[type[types.Type], JsonObject]] = {
    types.AnyType: {"x-kubernetes-preserve-unknown-fields": True},
    types.RawType: {"x-kubernetes-preserve-unknown-fields": True},
    types.BoolType: {"type": "boolean"},
    types.BytesType: {"type": "string", "format": "byte"},
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.FloatType: {"type": "number", "format": "double"},
    types.IntType: {"type": "integer", "format": "int64"},
    types.StrType: {"type": "string"},
}
_INT_OR_STRING: Final[JsonObject] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_LIMITS: Final = {
    types.StrType: {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    types.ListType: {"min_length": "minItems", "max_length": "maxItems"},
    types.SetType: {"min_length": "minItems", "max_length": "maxItems"},
    types.DictType: {"min_length": "minProperties", "max_length": "maxProperties"},
    types.IntType: {"ge": "minimum", "le": "maximum", "multiple_of": "multipleOf"},
    types.FloatType: {"ge": "minimum", "le": "maximum", "multiple_of": "multipleOf"},
}


class SchemaError(TypeError):
    """A declared type that no structural schema can describe: a bug in our code."""


@cache
def schema_of(cls: type[Value]) -> JsonObject:
    """Return the structural schema of a declared type. It is shared: do not change it."""
    return _struct(cls, ())


Above = tuple[type, ...]
"""The Structs around a type, to detect one that contains itself."""


def _struct(cls: type, above: Above) -> JsonObject:
    if cls in above:
        raise SchemaError(f"{cls.__name__} contains itself, which no structural schema can say")
    info = types.type_info(cls)
    if not isinstance(info, types.StructType):
        raise SchemaError(f"{cls.__name__} is not a Struct")
    schema: JsonObject = {"type": "object"}
    if properties := _properties(info, (*above, cls)):
        schema["properties"] = properties
    if required := sorted(field.encode_name for field in info.fields if field.required):
        schema["required"] = required
    return _described(schema, type_description(cls))


def _properties(info: types.StructType, above: Above) -> JsonObject:
    descriptions = dict(field_descriptions(info.cls))
    properties = {
        field.encode_name: _described(_schema(field.type, above), descriptions.get(field.name, ""))
        for field in info.fields
    }
    if issubclass(info.cls, Object):
        properties["metadata"] = {"type": "object"}
        for name, description in _OF_EVERY_OBJECT.items():
            encoded = "apiVersion" if name == "api_version" else name
            properties[encoded] = {"description": description, "type": "string"}
    return properties


def _described(schema: JsonObject, description: str) -> JsonObject:
    """Prefer a field's own description over that of its type."""
    return {**schema, "description": description} if description else schema


def _schema(kind: types.Type, above: Above) -> JsonObject:
    if isinstance(kind, types.Metadata):
        return _schema(kind.type, above) | (kind.extra_json_schema or {})
    if isinstance(kind, types.UnionType):
        return _union(kind, above)
    return _type(kind, above) | _limits(kind)


def _type(kind: types.Type, above: Above) -> JsonObject:
    match kind:
        case types.StructType():
            return _struct(kind.cls, above)
        case types.ListType() | types.SetType() | types.VarTupleType():
            return {"type": "array", "items": _schema(kind.item_type, above)}
        case types.DictType():
            return _map(kind, above)
        case types.LiteralType():
            return _enum(list(kind.values))
        case types.EnumType():
            return _enum([member.value for member in kind.cls])
        case types.CustomType() if issubclass(kind.cls, Scalar):
            return dict(kind.cls.schema)
    try:
        return dict(_PLAIN[type(kind)])
    except KeyError:
        raise SchemaError(f"no structural schema describes {kind}") from None


def _map(kind: types.DictType, above: Above) -> JsonObject:
    if isinstance(kind.value_type, types.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _schema(kind.value_type, above)}


def _enum(values: list[object]) -> JsonObject:
    if all(isinstance(value, str) for value in values):
        return {"type": "string", "enum": values}
    return {"type": "integer", "enum": values}


def _union(kind: types.UnionType, above: Above) -> JsonObject:
    """Return the schema of a union: optional types and int-or-string are the only ones."""
    members = [t for t in kind.types if not isinstance(t, types.NoneType)]
    if len(members) == 1:
        return _schema(members[0], above)
    if {type(member) for member in members} == {types.IntType, types.StrType}:
        return dict(_INT_OR_STRING)
    raise SchemaError(f"no structural schema describes {kind}")


def _limits(kind: types.Type) -> JsonObject:
    names = _LIMITS.get(type(kind), {})
    limits = {word: getattr(kind, name) for name, word in names.items()}
    limits = {word: limit for word, limit in limits.items() if limit is not None}
    for name, word in (("gt", "minimum"), ("lt", "maximum")):
        if (bound := getattr(kind, name, None)) is not None:
            limits |= {word: bound, f"exclusive{word.capitalize()}": True}
    return limits
