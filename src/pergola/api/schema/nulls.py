"""Nulls of fields that are not nullable: the API server removes them before it validates."""

from typing import overload

from pergola.api.objects import JsonObject, JsonValue


@overload
def without_nulls(schema: JsonObject, value: JsonObject) -> JsonObject: ...
@overload
def without_nulls(schema: JsonObject, value: JsonValue) -> JsonValue: ...
def without_nulls(schema: JsonObject, value: JsonValue) -> JsonValue:
    """Return a value without the nulls that an API server removes; the argument is unchanged.

    It removes entries of maps, not items of lists, and nothing below unknown fields.

    Args:
        schema: structural, see `schema_of`.
        value: JSON.
    """
    match value:
        case dict():
            return _map(schema, value)
        case list():
            items: JsonObject = schema.get("items") or {}
            return [without_nulls(items, entry) for entry in value]
    return value


def _map(schema: JsonObject, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    properties: JsonObject = schema.get("properties") or {}
    others: JsonObject | None = schema.get("additionalProperties")
    pruned: dict[str, JsonValue] = {}
    for name, entry in value.items():
        field = properties.get(name, others)
        if entry is None and field is not None and not field.get("nullable"):
            continue
        pruned[name] = without_nulls(field or {}, entry)
    return pruned
