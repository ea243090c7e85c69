"""Conversion of JSON to declared types."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from pergola.api.objects import JsonValue
from pergola.api.schema.declare import Scalar, Value
from pergola.api.schema.nulls import without_nulls
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import Finding, validate

V = TypeVar("V", bound=Value)


class Malformed(ValueError):
    """A value that violates its schema; the message lists every invalid field."""

    def __init__(self, of: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(f"{of}: " + "; ".join(map(str, findings)))


def read(cls: type[V], value: JsonValue, *, path: str = "", of: str) -> V:
    """Return the value as a declared type; unknown fields are ignored.

    Args:
        cls: the type.
        value: JSON.
        path: the path of the value, for the error.
        of: the title of the containing object, e.g. `ManagedResource garden/web`, for the error.

    Raises:
        Malformed: the value does not follow the schema.
    """
    try:
        return msgspec.convert(value, cls, dec_hook=_custom)
    except (msgspec.ValidationError, TypeError):
        found = validate(schema_of(cls), value, path)
    wrong = [finding for finding in found if finding.severity == "error"]
    if wrong:
        raise Malformed(of, wrong)
    pruned = without_nulls(schema_of(cls), value)
    return msgspec.convert(_normalized(pruned), cls, dec_hook=_custom)


def _normalized(value: JsonValue) -> JsonValue:
    """Normalize numbers as the API server does: `3.0` is an integer."""
    match value:
        case dict():
            return {k: _normalized(v) for k, v in value.items()}
        case list():
            return [_normalized(entry) for entry in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _custom(cls: type, value: object) -> object:
    """Let types that JSON lacks decode themselves from text."""
    if issubclass(cls, Scalar) and isinstance(value, str):
        return cls.from_text(value)
    raise TypeError(f"no {cls.__name__}")
