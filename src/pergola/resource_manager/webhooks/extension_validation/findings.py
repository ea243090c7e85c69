"""Comparison of values by meaning, and its representation in findings."""

from collections.abc import Iterator

from pergola.api.field_errors import shown
from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.patches import same


def same_meaning(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values mean the same: null and empty values count as absent."""
    return same(_reduced(one), _reduced(other))


def differences(new: JsonValue, old: JsonValue, path: str = "") -> Iterator[str]:
    """Yield each difference in meaning between two values: `<field>: <new> != <old>`."""
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
    """Return the string at a dotted path; empty if there is none."""
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
