"""Findings of a validation, in the format of the API server."""

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import JsonValue

__all__ = [
    "IMMUTABLE",
    "Cause",
    "duplicate",
    "forbidden",
    "invalid",
    "required",
    "sentence",
    "shown",
    "unsupported",
]

IMMUTABLE: Final = "field is immutable"
"""The text of a finding about a field that cannot change."""


class Cause(NamedTuple):
    """One finding of a validation, as it appears in `status.details.causes`.

    Attributes:
        reason: such as `FieldValueRequired`.
        message: the message without the field path, such as `Required value: field is required`.
        field: the field path, such as `spec.ipFamilies[1]`.
    """

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def under(self, prefix: str) -> "Cause":
        """Return the finding for an object that contains this one at `prefix`."""
        return self._replace(field=f"{prefix}.{self.field}" if self.field else prefix)


def required(path: str, detail: str = "field is required") -> Cause:
    """Return the finding for a missing or empty value."""
    return Cause("FieldValueRequired", f"Required value: {detail}", path)


def invalid(path: str, value: JsonValue, detail: str) -> Cause:
    """Return the finding for an invalid value."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", path)


def unsupported(path: str, value: JsonValue, supported: Iterable[str]) -> Cause:
    """Return the finding for a value that is not one of the supported ones."""
    values = ", ".join(f'"{name}"' for name in supported)
    return Cause(
        "FieldValueNotSupported",
        f"Unsupported value: {shown(value)}: supported values: {values}",
        path,
    )


def duplicate(path: str, value: JsonValue) -> Cause:
    """Return the finding for a duplicate."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def forbidden(path: str, detail: str) -> Cause:
    """Return the finding for a forbidden field."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", path)


def shown(value: JsonValue) -> str:
    """Quote a value for a finding: strings in quotes, the rest as JSON."""
    # Not orjson: it refuses numbers above 64 bits, which a finding may be about.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sentence(causes: Iterable[Cause]) -> str:
    """Return all findings as one text, in the format of the API server."""
    texts = list(map(str, causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
