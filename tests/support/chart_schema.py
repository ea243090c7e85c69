"""Derive the schema and the page of a configuration in a chart from its type."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.kube.yaml import parse

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


def table(chart: Path, config: str) -> str:
    """Return a table of all values of a chart, in Markdown.

    Args:
        chart: Its folder.
        config: The cell about the value `config`, whose fields are on a page of their own.
    """
    values = parse((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    if not isinstance(values, dict):
        raise TypeError(f"{chart / 'values.yaml'} is not an object")
    properties = dict(map_at(schema, "properties"))
    properties.pop("global", None)
    rows = _rows(properties, values, config)
    return "\n".join(("| value | default | meaning |", "|---|---|---|", *rows)) + "\n"


def _rows(
    properties: JsonObject, values: JsonObject, config: str, above: str = ""
) -> Iterator[str]:
    for name, schema in properties.items():
        path = f"{above}{name}"
        if path == "config":
            yield f"| `{path}` |  | {config} |"
        elif "properties" in schema and path != "resources":
            yield from _rows(schema["properties"], values[name], config, f"{path}.")
        else:
            yield f"| `{path}` | {_shown(values[name])} | {schema['description']} |"


def _shown(default: JsonValue) -> str:
    return f"`{json.dumps(default)}`" if default else ""
