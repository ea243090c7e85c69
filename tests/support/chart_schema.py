"""Derive the schema of a configuration in a chart from its type."""

from typing import Final

from pergola.api.objects import JsonObject

_DURATION: Final = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$"
_KEPT: Final = ("type", "description", "enum", "minimum", "maximum", "required")


def strict(schema: JsonObject) -> JsonObject:
    """Return a structural schema as a JSON Schema that refuses unknown fields."""
    found: JsonObject = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("format") == "duration":
        found["pattern"] = _DURATION
    if "items" in schema:
        found["items"] = strict(schema["items"])
    if "properties" in schema:
        found["additionalProperties"] = False
        found["properties"] = {name: strict(each) for name, each in schema["properties"].items()}
    elif "additionalProperties" in schema:
        found["additionalProperties"] = strict(schema["additionalProperties"])
    return found
