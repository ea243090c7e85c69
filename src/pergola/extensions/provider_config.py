"""`providerConfig` as an extension's own type, read strictly (spec 40 §3.3, §10)."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Final, TypeVar

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed, read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import NO_EFFECT, Finding, child, item, validate

V = TypeVar("V", bound=Value)
_EMPTY: Final[JsonObject] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "number": 0,
    "object": {},
    "string": "",
}
"""The value of a null among entries, by type."""


def read_strict(
    cls: type[V],
    value: JsonValue,
    gvk: GroupVersionKind,
    *,
    path: str = "spec.providerConfig",
    needs_type: bool = False,
) -> V:
    """Parse the config into a declared type; absent means empty, and null means absent.

    Args:
        needs_type: whether `apiVersion` and `kind` are required; they may be missing where others
            write `{"overlay": {"enabled": false}}`.

    Raises:
        Malformed: another type, an unknown field, or a value of a wrong type; all findings are
            reported, with their paths.
    """
    schema = schema_of(cls)
    obj = {} if value is None else value
    content = _as_decoded(schema, _without_type(obj))
    findings = [
        *_type_findings(obj, gvk, path, needs_type=needs_type),
        *_unknown_or_wrong(schema, content, path),
        *_fractions(schema, content, path),
    ]
    if findings:
        raise Malformed(gvk.kind, findings)
    return read(cls, content, path=path, of=gvk.kind)


def read_leniently(
    cls: type[V],
    value: JsonValue,
    gvk: GroupVersionKind,
    *,
    path: str = "",
    needs_type: bool = False,
) -> V:
    """Parse stored data into a declared type, skipping unknown fields.

    Args:
        needs_type: whether `apiVersion` and `kind` must be those of the type.

    Raises:
        Malformed: another type, or a value of a wrong type.
    """
    obj = {} if value is None else value
    if needs_type and (findings := _type_findings(obj, gvk, path, needs_type=True)):
        raise Malformed(gvk.kind, findings)
    content = _as_decoded(schema_of(cls), _without_type(obj))
    return read(cls, content, path=path, of=gvk.kind)


def _type_findings(
    value: JsonValue, gvk: GroupVersionKind, path: str, *, needs_type: bool
) -> list[Finding]:
    if not isinstance(value, dict):
        return []
    expected = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    return [
        Finding(child(path, field), f'must be "{desired}"')
        for field, desired in expected.items()
        if value.get(field) != desired and (needs_type or value.get(field) not in (None, ""))
    ]


def _unknown_or_wrong(schema: JsonObject, value: JsonValue, path: str) -> list[Finding]:
    found = validate(schema, value, path)
    return [Finding(each.path, each.problem.replace(NO_EFFECT, "")) for each in found]


def _fractions(schema: JsonObject, value: JsonValue, path: str) -> Iterator[Finding]:
    """Yield findings about `1.0` for an integer, which decoders in Go refuse."""
    match value:
        case float() if schema.get("type") == "integer" and value.is_integer():
            yield Finding(path, f"must be an integer: write {int(value)}")
        case dict():
            properties, others = _fields_of(schema)
            for name, entry in value.items():
                if (field := properties.get(name, others)) is not None:
                    where = child(path, name) if name in properties else item(path, name)
                    yield from _fractions(field, entry, where)
        case list() if items := schema.get("items"):
            for index, entry in enumerate(value):
                yield from _fractions(items, entry, item(path, index))


def _as_decoded(schema: JsonObject, value: JsonValue) -> JsonValue:
    """Return a value as the API's decoders in Go take it.

    A null leaves a field absent, and is the empty value as an entry of a list or of a map. An
    amount of a resource may be any number. Unknown fields stay as they are.
    """
    match value:
        case dict():
            properties, others = _fields_of(schema)
            decoded: JsonObject = {}
            for name, entry in value.items():
                field = properties.get(name)
                if field is not None and entry is not None:
                    decoded[name] = _as_decoded(field, entry)
                elif field is None:
                    decoded[name] = entry if others is None else _as_entry(others, entry)
            return decoded
        case list() if items := schema.get("items"):
            return [_as_entry(items, entry) for entry in value]
        case float() if schema.get("x-kubernetes-int-or-string") and "pattern" in schema:
            return str(value)
    return value


def _as_entry(schema: JsonObject, value: JsonValue) -> JsonValue:
    if value is not None:
        return _as_decoded(schema, value)
    if schema.get("x-kubernetes-int-or-string"):
        return 0
    return deepcopy(_EMPTY.get(schema.get("type", "")))


def _fields_of(schema: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    return schema.get("properties") or {}, schema.get("additionalProperties")


def _without_type(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    rest: JsonObject = {name: v for name, v in value.items() if name not in ("apiVersion", "kind")}
    return rest
