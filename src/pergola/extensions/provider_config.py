"""`providerConfig` as an extension's own type, read strictly (spec 40 §3.3, §10)."""

from typing import TypeVar

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed, read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import NO_EFFECT, Finding, child, validate

V = TypeVar("V", bound=Value)


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
    obj = {} if value is None else _without_nulls(value)
    findings = [
        *_type_findings(obj, gvk, path, needs_type=needs_type),
        *_unknown_or_wrong(cls, obj, path),
    ]
    if findings:
        raise Malformed(gvk.kind, findings)
    return read(cls, _without_type(obj), path=path, of=gvk.kind)


def read_leniently(cls: type[V], value: JsonValue, gvk: GroupVersionKind, *, path: str = "") -> V:
    """Parse stored data into a declared type, skipping unknown fields.

    Raises:
        Malformed: a value of a wrong type.
    """
    obj = {} if value is None else _without_nulls(value)
    return read(cls, _without_type(obj), path=path, of=gvk.kind)


def _type_findings(
    value: JsonValue, gvk: GroupVersionKind, path: str, *, needs_type: bool
) -> list[Finding]:
    if not isinstance(value, dict):
        return []
    expected = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    return [
        Finding(child(path, field), f'must be "{desired}"')
        for field, desired in expected.items()
        if value.get(field, "") != desired and (needs_type or value.get(field, "") != "")
    ]


def _unknown_or_wrong(cls: type[Value], value: JsonValue, path: str) -> list[Finding]:
    found = validate(schema_of(cls), _without_type(value), path)
    return [Finding(each.path, each.problem.replace(NO_EFFECT, "")) for each in found]


def _without_nulls(value: JsonValue) -> JsonValue:
    """Remove nulls, as the API's decoders in Go do."""
    match value:
        case dict():
            return {name: _without_nulls(v) for name, v in value.items() if v is not None}
        case list():
            return [_without_nulls(entry) for entry in value]
    return value


def _without_type(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    rest: JsonObject = {name: v for name, v in value.items() if name not in ("apiVersion", "kind")}
    return rest
