"""Field references of declared types as Markdown: path, type, default and description."""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, cast

import msgspec
import msgspec.inspect as types

from pergola.api.core_v1 import LabelSelector
from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Scalar, Value
from pergola.api.schema.docstrings import field_descriptions
from pergola.api.schema.structural import schema_of


class Field(NamedTuple):
    """One field of a declared type.

    Attributes:
        path: Such as `server.metrics.port`; items of a list are `namespaces[]`.
        default: As YAML; empty for a required field or one without a default.
    """

    path: str
    type: str
    default: str
    description: str


def fields_of(cls: type[Value], defaults: Value | None = None) -> list[Field]:
    """Return all fields of a type and of the types in it, depth first.

    Args:
        defaults: A value whose fields are the defaults; by default those of the declaration.
    """
    return list(_fields(cls, defaults, schema_of(cls), ""))


def markdown(fields: list[Field]) -> str:
    """Return fields as a table."""
    rows = [
        f"| `{field.path}` | {field.type} | {field.default} | {field.description} |"
        for field in fields
    ]
    return "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _fields(cls: type, value: Value | None, schema: JsonObject, above: str) -> Iterator[Field]:
    info = cast("types.StructType", types.type_info(cls))
    descriptions = dict(field_descriptions(cls))
    for field in info.fields:
        path = f"{above}{field.encode_name}"
        shape = schema["properties"][field.encode_name]
        present = getattr(value, field.name, None) if value is not None else _default(field)
        description = descriptions.get(field.name, shape.get("description", ""))
        nested, is_list = _struct(field.type)
        suffix = "[]" if is_list else ""
        kind = "label selector" if nested is LabelSelector else _type(shape)
        shown = "" if nested else _shown(present)
        yield Field(path + suffix, kind, shown, " ".join(description.split()))
        if nested is not None and nested is not LabelSelector:
            inner = shape["items"] if is_list else shape
            yield from _fields(
                nested, present if isinstance(present, Value) else None, inner, f"{path}{suffix}."
            )


def _struct(kind: types.Type) -> tuple[type | None, bool]:
    """Return the Struct that a field holds, or holds a list of."""
    match kind:
        case types.Metadata():
            return _struct(kind.type)
        case types.UnionType():
            members = [t for t in kind.types if not isinstance(t, types.NoneType)]
            return _struct(members[0]) if len(members) == 1 else (None, False)
        case types.ListType():
            return _struct(kind.item_type)[0], True
        case types.StructType():
            return kind.cls, False
    return None, False


def _default(field: types.Field) -> object:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return None if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _type(schema: JsonObject) -> str:
    if choices := schema.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("format") if schema.get("format") == "duration" else schema.get("type")
    match kind:
        case "array":
            items = schema["items"]
            return "list" if items.get("type") == "object" else f"list of {_type(items)}s"
        case "object":
            return "map"
        case None:
            return "any"
    return str(kind)


def _shown(value: object) -> str:
    match value:
        case None | "" | Value():
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case Enum():
            return f"`{value.value}`"
        case list() | dict() | tuple() | frozenset() | set():
            return f"`{msgspec.json.encode(value, enc_hook=str).decode()}`" if value else ""
        case Scalar():
            return f"`{value}`"
    return f"`{value}`"
