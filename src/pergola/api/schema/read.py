"""From JSON to declared types."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from pergola.api.objects import JsonValue
from pergola.api.schema.declare import Value
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import Finding, validate

V = TypeVar("V", bound=Value)


class Malformed(ValueError):  # noqa: N818 - says what the value is, as Invalid does
    """A value that its schema does not allow; the text names every wrong field."""

    def __init__(self, of: str, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(f"{of}: " + "; ".join(map(str, findings)))


def read(cls: type[V], value: JsonValue, *, path: str = "", of: str) -> V:
    """The value as a declared type; fields that the type does not have are passed over.

    Args:
        cls: the type.
        value: JSON.
        path: where the value is, for the error.
        of: what the value is a part of, e.g. `ManagedResource garden/web`, for the error.

    Raises:
        Malformed: the value is not of that shape.
    """
    try:
        return msgspec.convert(value, cls, dec_hook=_custom)
    except msgspec.ValidationError as error:
        found = validate(schema_of(cls), value, path)
        wrong = [finding for finding in found if finding.severity == "error"]
        raise Malformed(of, wrong or [Finding(path, str(error))]) from None


def _custom(cls: type, value: object) -> object:
    """Types of our own read themselves from text."""
    return cls.from_text(value)  # type: ignore[attr-defined, unused-ignore]
