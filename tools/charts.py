"""Write what the charts share, and what derives from their values.

    python -m tools.charts

Each chart gets charts/shared/_pergola.tpl, the definitions of its kinds, a schema of its values and
a README. The comments in values.yaml describe the values; the schemas of those that all charts have
are in charts/shared/values.schema.json, the others in the schema of the chart itself.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.kube.yaml import parse

CHARTS: Final = Path(__file__).resolve().parents[1] / "charts"
SHARED: Final = CHARTS / "shared"
NAMES: Final = tuple(sorted(path.parent.name for path in CHARTS.glob("*/Chart.yaml")))
CONFIG: Final = "config"
"""The value that is a configuration file, whose schema is that of its type."""
_UNSET: Final = {
    "dashboard": ("hosts",),
    "extension-admission-runtime": ("extension",),
    "extension-admission-virtual": ("extension", "namespace"),
}
"""Values that users have to set."""
_FREE: Final = ("nodeToleration", "resources", "priorityClassName", "topologySpreadConstraints")
"""Values whose defaults users may drop with null."""
_TEXT: Final = "description"
_IMAGE: Final = (
    "Set `image.repository`, which has no default. The charts of a release name their image, and "
    "its digest."
)
_TEMPLATES: Final = "_pergola.tpl"
_SCHEMA: Final = "values.schema.json"
_DEFINITIONS: Final = {
    "operator": ("operator.gardener.cloud_extensions", "operator.gardener.cloud_gardens"),
    "resource-manager": ("resources.gardener.cloud_managedresources",),
}
_FIELD: Final = re.compile(r"( *)([A-Za-z]\w*):")
_COMMENT: Final = re.compile(r" *# ?(.*)")


def files(chart: str) -> dict[Path, str]:
    """Return the generated files of a chart by their paths."""
    folder = CHARTS / chart
    definitions = [f"{name}.yaml" for name in _DEFINITIONS.get(chart, ())]
    return {
        folder / "templates" / _TEMPLATES: (SHARED / _TEMPLATES).read_text(),
        **{
            folder / "files/crds" / each: (CHARTS / "crds" / each).read_text()
            for each in definitions
        },
        folder / _SCHEMA: f"{json.dumps(schema(chart), indent=2, ensure_ascii=False)}\n",
        folder / "README.md": readme(chart),
    }


def schema(chart: str) -> JsonObject:
    """Return the schema of the values of a chart."""
    shared: JsonObject = json.loads((SHARED / _SCHEMA).read_text())
    own: JsonObject = json.loads((CHARTS / chart / _SCHEMA).read_text())
    properties = map_at(own, "properties")
    described = comments((CHARTS / chart / "values.yaml").read_text())
    found, values = {"global": shared["global"]}, _values(chart)
    for name, value in values.items():
        of_name = shared.get(name) or properties[name]
        found[name] = of_name if name == CONFIG else _described(of_name, value, described, name)
    ignored = {
        name: each
        for name, each in properties.items()
        if map_at(properties, name).keys() == {_TEXT}
    }
    chosen = {name: each for name, each in values.items() if name not in _FREE}
    required = sorted({*_UNSET.get(chart, ()), *_needed(chosen, found)})
    return {**own, "required": required, "properties": {**found, **ignored}}


def comments(text: str) -> dict[str, str]:
    """Return the comment above each value of a file, by the path of the value."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    block: list[str] = []
    for line in text.splitlines():
        if comment := _COMMENT.fullmatch(line):
            block.append(comment.group(1))
            continue
        if field := _FIELD.match(line):
            indent = len(field.group(1))
            path = [each for each in path if each[0] < indent] + [(indent, field.group(2))]
            found[".".join(name for _, name in path)] = " ".join(block)
        block = []
    return found


def _described(
    schema: JsonObject, value: JsonValue, described: dict[str, str], path: str
) -> JsonObject:
    """Return a schema with the fields that a value has, and their comments as descriptions."""
    text = described.get(path)
    found: JsonObject = {_TEXT: text} if text else {}
    found |= {name: each for name, each in schema.items() if name != _TEXT}
    properties = schema.get("properties")
    if isinstance(properties, dict) and isinstance(value, dict):
        found["properties"] = {
            name: _described(map_at(properties, name), each, described, f"{path}.{name}")
            for name, each in value.items()
        }
        if path not in _FREE and (needed := _needed(value, properties)):
            found["required"] = needed
    return found


def _needed(values: JsonObject, properties: JsonObject) -> list[str]:
    """Return the values that templates cannot do without: sections, and those with a default.

    A value is absent if a user sets null, which drops the default.
    """
    return [
        name
        for name, value in values.items()
        if "properties" in map_at(properties, name) or (value and not isinstance(value, dict))
    ]


def readme(chart: str) -> str:
    """Return the README of a chart."""
    parsed = parse((CHARTS / chart / "Chart.yaml").read_text())
    about = parsed if isinstance(parsed, dict) else {}
    paragraphs = (
        f"# {about['name']}",
        f"{about['description']}.",
        *([_IMAGE] if "image" in _values(chart) else []),
        "Helm refuses values that are not in this table, and those of another type.",
        table(chart, "The configuration file of the process; the schema describes its fields."),
    )
    return "\n\n".join(paragraphs)


def table(chart: str, config: str) -> str:
    """Return a table of all values of a chart, in Markdown.

    Args:
        config: the cell about the value `config`.
    """
    described = comments((CHARTS / chart / "values.yaml").read_text())
    described[CONFIG] = config
    properties = map_at(schema(chart), "properties")
    rows = _rows(properties, _values(chart), described)
    return "\n".join(("| value | default | meaning |", "|---|---|---|", *rows)) + "\n"


def _rows(
    properties: JsonObject, values: JsonObject, described: dict[str, str], above: str = ""
) -> Iterator[str]:
    for name, value in values.items():
        path = f"{above}{name}"
        of_value = map_at(properties, name)
        if path == CONFIG:
            yield f"| `{path}` |  | {described[path]} |"
        elif "properties" in of_value and isinstance(value, dict) and path != "resources":
            yield from _rows(map_at(of_value, "properties"), value, described, f"{path}.")
        else:
            yield f"| `{path}` | {_shown(value)} | {described.get(path, '')} |"


def _shown(default: JsonValue) -> str:
    return f"`{json.dumps(default)}`" if default else ""


def _values(chart: str) -> JsonObject:
    parsed = parse((CHARTS / chart / "values.yaml").read_text())
    if not isinstance(parsed, dict):
        raise TypeError(f"{CHARTS / chart / 'values.yaml'} is not an object")
    return parsed


def main() -> None:
    """Write the files of all charts."""
    for chart in NAMES:
        for path, text in files(chart).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
