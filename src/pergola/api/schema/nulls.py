"""Nulls of fields that are not nullable: the API server removes them before it validates."""

from typing import overload

from pergola.api.objects import JsonObject, JsonValue


@overload
def without_nulls(schema: JsonObject, value: JsonObject) -> JsonObject: ...
@overload
def without_nulls(schema: JsonObject, value: JsonValue) -> JsonValue: ...
def without_nulls(schema: JsonObject, value: JsonValue) -> JsonValue:
    """Return a value without the nulls that an API server removes; the argument is unchanged.

    It removes entries of maps, not items of lists. It does not look below unknown fields, which may
    be nested deeper than Python can recurse.

    Args:
        schema: structural, see `schema_of`.
        value: JSON.
    """
    match value:
        case dict():
            return _map(schema, value)
        case list() if items := schema.get("items"):
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
        pruned[name] = entry if field is None else without_nulls(field, entry)
    return pruned
