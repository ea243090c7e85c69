"""Findings in the words of the API server, so that clients and people read them as usual."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from pergola.admission.review import Cause
from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.patches import same

IMMUTABLE: Final = "field is immutable"


def required(path: str, detail: str = "field is required") -> Cause:
    """Something is missing or empty."""
    return Cause("FieldValueRequired", f"Required value: {detail}", path)


def invalid(path: str, value: JsonValue, detail: str) -> Cause:
    """Something has a value that it may not have."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", path)


def unsupported(path: str, value: JsonValue, supported: Iterable[str]) -> Cause:
    """Something has none of the values that it may have."""
    values = ", ".join(f'"{name}"' for name in supported)
    return Cause(
        "FieldValueNotSupported",
        f"Unsupported value: {shown(value)}: supported values: {values}",
        path,
    )


def duplicate(path: str, value: JsonValue) -> Cause:
    """Something is there a second time."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def forbidden(path: str, detail: str) -> Cause:
    """Something may not be said here at all."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", path)


def shown(value: JsonValue) -> str:
    """A value as it is quoted in a finding: strings in quotes, the rest as JSON."""
    # Not orjson, which refuses numbers of more than 64 bits: a finding may be about one.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def same_meaning(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values mean the same: what is null or empty is as good as absent."""
    return same(_reduced(one), _reduced(other))


def differences(new: JsonValue, old: JsonValue, path: str = "") -> Iterator[str]:
    """Each place at which two values differ in meaning: `<field>: <new> != <old>`."""
    if same_meaning(new, old):
        return
    if isinstance(new, dict) and isinstance(old, dict):
        for name in dict.fromkeys([*new, *old]):
            at = f"{path}.{name}" if path else name
            yield from differences(new.get(name), old.get(name), at)
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, (left, right) in enumerate(zip(new, old, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    else:
        yield f"{path}: {shown(new)} != {shown(old)}"


def text_at(obj: JsonObject, path: str) -> str:
    """The text at a dotted path; empty if there is none."""
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _reduced(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        reduced = {name: _reduced(item) for name, item in value.items()}
        return {name: item for name, item in reduced.items() if item is not None} or None
    if isinstance(value, list):
        return [_reduced(item) for item in value] or None
    return None if value == "" else value
