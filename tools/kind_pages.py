"""Reference of kinds: an overview, and a page per kind with each field of its definition."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.cli.crds.groups import chosen
from pergola.extensions.actuator import Actuator
from pergola.providers.aws.extension import ACTUATORS
from pergola.providers.networking.calico import Calico
from pergola.providers.networking.cilium import Cilium

GROUPS: Final = ("pergola", "operator", "extensions", "shoot-extensions")
"""The groups of `pergola crds` whose kinds belong to Gardener and Pergola."""
EXTENSIONS: Final[Mapping[str, Sequence[type[Actuator]]]] = {
    "aws": ACTUATORS,
    "calico": (Calico,),
    "cilium": (Cilium,),
}
"""The actuators by the name of their extension."""
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"
_READERS: Final = {
    "ManagedResource": "resource manager",
    "Garden": "operator",
    "Extension of operator.gardener.cloud": "operator",
    "Cluster": "all extensions",
}
_NUMBERS: Final = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


class Field(NamedTuple):
    """A field of a kind.

    Attributes:
        path: such as `spec.secretRefs[].name`.
        type: with its limits.
        required: `yes`, or empty.
    """

    path: str
    type: str
    required: str
    description: str


def definitions() -> list[JsonObject]:
    """Return the CustomResourceDefinitions, one for each kind, sorted by group and kind."""
    own, foreign = chosen(GROUPS)
    found = {each["metadata"]["name"]: each for each in (*foreign, *own)}
    return sorted(found.values(), key=lambda crd: (crd["spec"]["group"], _kind(crd)))


def overview() -> str:
    """Return the tables of the page that lists all kinds, and what each extension serves."""
    rows = [
        f"| {_kind(crd)} | `{crd['spec']['group']}` | {_scope(crd)} | {reader(crd)} |"
        for crd in definitions()
    ]
    served = [
        f"| `{name}` | {actuator.kind} | `{actuator.type}` |"
        for name, actuators in EXTENSIONS.items()
        for actuator in actuators
    ]
    kinds = ["| kind | group | scope | read by |", "|---|---|---|---|", *rows]
    extensions = ["| extension | kind | `spec.type` |", "|---|---|---|", *served]
    return "\n".join(
        ["\n## All kinds\n", *kinds, "\n## What each extension serves\n", *extensions, ""]
    )


def reader(crd: JsonObject) -> str:
    """Return the parts of Pergola that reconcile objects of a kind."""
    kind, group = _kind(crd), crd["spec"]["group"]
    known = _READERS.get(f"{kind} of {group}") or _READERS.get(kind)
    if known and not (kind == "Extension" and group.startswith("extensions")):
        return known
    serving = [
        name
        for name, actuators in EXTENSIONS.items()
        if any(actuator.kind == kind for actuator in actuators)
    ]
    return ", ".join(f"extension `{name}`" for name in serving) or "extensions of others"


def kind_page(crd: JsonObject) -> str:
    """Return the page of a kind."""
    (version,) = [each for each in maps_at(crd, "spec", "versions") if each.get("storage")]
    schema = map_at(version, "schema", "openAPIV3Schema")
    rows = [
        f"| `{field.path}` | {field.type} | {field.required} | {field.description} |"
        for part in ("spec", "status")
        if part in schema.get("properties", {})
        for field in fields(schema["properties"][part], part)
    ]
    names = crd["spec"]["names"]
    short = ", ".join(f"`{each}`" for each in names.get("shortNames", ())) or "none"
    return "\n".join(
        [
            f"# {_kind(crd)} ({crd['spec']['group']})",
            "",
            _text(schema),
            "",
            f"- `apiVersion: {crd['spec']['group']}/{version['name']}`, `kind: {_kind(crd)}`",
            f"- Scope: {_scope(crd)}. Short names: {short}.",
            f"- Read by: {reader(crd)}.",
            "",
            "| field | type | required | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def page_name(crd: JsonObject) -> str:
    """Return the name of the page of a kind."""
    return str(crd["metadata"]["name"])


def fields(schema: Mapping[str, object], path: str) -> Iterator[Field]:
    """Yield the fields below a path, depth first."""
    shape = dict(schema)
    required = shape.get("required")
    names = required if isinstance(required, list) else []
    for name, each in map_at(shape, "properties").items():
        below, inner = _inner(each, f"{path}.{name}")
        yield Field(below, _type(each), "yes" if name in names else "", _text(each))
        yield from fields(inner, below)


def _inner(schema: JsonObject, path: str) -> tuple[str, JsonObject]:
    """Return the path and schema of the items of a list or map, or of the field itself."""
    if schema.get("type") == "array":
        return _inner(map_at(schema, "items"), f"{path}[]")
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return _inner(values, f"{path}.*")
    return path, schema


def _type(schema: JsonObject) -> str:
    limits = [f"{name} {schema[name]}" for name in _NUMBERS if name in schema]
    if "pattern" in schema:
        limits.append(f"pattern `{schema['pattern']}`".replace("|", "\\|"))
    if "default" in schema:
        limits.append(f"default `{orjson.dumps(schema['default']).decode()}`")
    return ", ".join([_plain_type(schema), *limits])


def _plain_type(schema: JsonObject) -> str:
    if choices := schema.get("enum"):
        return " or ".join(f"`{choice}`" for choice in choices)
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_plain_type(map_at(schema, 'items'))}"
    if kind == "object" and "additionalProperties" in schema:
        values = schema["additionalProperties"]
        return f"map of {_plain_type(values)}" if isinstance(values, dict) else "map"
    return kind


def _text(schema: JsonObject) -> str:
    """Return a description on one line, without what a table or Sphinx would take for markup."""
    text = " ".join(str(schema.get("description", "")).split())
    for character in "|<>*_[]":
        text = text.replace(character, f"\\{character}")
    return text


def _kind(crd: JsonObject) -> str:
    return str(crd["spec"]["names"]["kind"])


def _scope(crd: JsonObject) -> str:
    return str(crd["spec"]["scope"]).lower()
