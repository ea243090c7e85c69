"""From Python types to structural OpenAPI v3 schemas, as an API server wants them in a CRD."""

from collections.abc import Callable, Mapping
from functools import cache, partial, singledispatch
from typing import Final

import msgspec.inspect as types

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Object, Value
from pergola.api.schema.docstrings import field_descriptions, type_description

_TYPE_META: Final = {
    "api_version": "The group and version of the schema in which the object is written.",
    "kind": "What the object is.",
    "metadata": "",
}


class SchemaError(TypeError):
    """A declared type that no structural schema can describe; a mistake in our code."""


@cache
def schema_of(cls: type[Value]) -> JsonObject:
    """The structural schema of a type. Shared: not to be changed."""
    return _struct(cls, ())


def _struct(cls: type, above: tuple[type, ...]) -> JsonObject:
    if cls in above:
        raise SchemaError(f"{cls.__name__} contains itself; a structural schema cannot say that")
    info = types.type_info(cls)
    if not isinstance(info, types.StructType):
        raise SchemaError(f"{cls.__name__} is no Struct")
    descriptions = dict(field_descriptions(cls))
    if issubclass(cls, Object):
        descriptions |= _TYPE_META
    walk = partial(_schema, above=(*above, cls))
    properties = {
        field.encode_name: _described(walk(field.type), descriptions.get(field.name, ""))
        for field in info.fields
    }
    schema: JsonObject = {"type": "object", "properties": properties}
    if required := sorted(field.encode_name for field in info.fields if field.required):
        schema["required"] = required
    return _described(schema, type_description(cls))


def _described(schema: JsonObject, description: str) -> JsonObject:
    """A field's own description wins over that of its type."""
    return {"description": description, **schema} | (
        {"description": description} if description else {}
    )
