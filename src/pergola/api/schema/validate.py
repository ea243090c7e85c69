"""Validation of JSON against a structural schema, offline, with every finding at once.

The API server uses the same schema, so both accept the same values; this validation also reports
unknown fields, which a server drops silently.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Final, Literal, NamedTuple

from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema import quantity
from pergola.api.schema.nulls import without_nulls

REQUIRED: Final = "is required"
NO_EFFECT: Final = " and has no effect"
"""The end of the finding about an unknown field; omitted where such a field is refused."""


class Finding(NamedTuple):
    """A problem at a path, e.g. `spec.secretRefs[0].name`.

    An unknown field is a `warning`; everything else is an `error`. The problem never quotes the
    value, which may be secret.
    """

    path: str
    problem: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


def validate(schema: JsonObject, value: JsonValue, path: str = "") -> list[Finding]:
    """Return all findings about a value, in the order of the schema's fields.

    A null in a field that is not nullable counts as absent, as in an API server.

    Args:
        schema: structural, see `schema_of`; CEL rules are left to the API server.
        value: JSON.
        path: the path of the value.
    """
    return list(_findings(schema, without_nulls(schema, value), path))


def child(path: str, field: str) -> str:
    """Return the path of a field."""
    return f"{path}.{field}" if path else field


def item(path: str, key: int | str) -> str:
    """Return the path of a list's item, or of an entry of a map with arbitrary keys."""
    return f"{path}[{key}]"


def quoted(values: Iterable[object]) -> str:
    """Format values for a sentence: `"a", "b"`."""
    return ", ".join(f'"{value}"' for value in values)


_IS: Final = {
    "object": (dict, "a map"),
    "array": (list, "a list"),
    "string": (str, "a string"),
    "boolean": (bool, "true or false"),
    "integer": (int, "an integer"),
    "number": (int | float, "a number"),
}
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_RFC3339: Final = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"


def _findings(schema: JsonObject, value: JsonValue, path: str) -> Iterator[Finding]:
    if value is None:
        if not _takes_null(schema):
            yield Finding(path, f"must be {_kind(schema)}, not null")
        return
    if not _has_type(schema, value):
        yield Finding(path, f"must be {_kind(schema)}, not {_name_of(value)}")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield Finding(path, f"must be one of {quoted(schema['enum'])}")
    match value:
        case dict():
            yield from _map(schema, value, path)
        case list():
            yield from _list(schema, value, path)
        case str():
            yield from _string(schema, value, path)
        case bool():
            return
        case int() | float():
            yield from _number(schema, value, path)


def _takes_null(schema: JsonObject) -> bool:
    return bool(schema.get("nullable")) or "type" not in schema


def _kind(schema: JsonObject) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "an integer or a string"
    return _IS[schema["type"]][1]


def _has_type(schema: JsonObject, value: JsonValue) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    kind: str | None = schema.get("type")
    if kind is None:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _IS[kind][0])


def _name_of(value: JsonValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "a map"
        case list():
            return "a list"
        case str():
            return "a string"
        case int():
            return "an integer"
    return "a number"


def _map(schema: JsonObject, value: dict[str, JsonValue], path: str) -> Iterator[Finding]:
    yield from _size(schema, len(value), path, "Properties", "entries")
    if (entries := schema.get("additionalProperties")) is not None:
        for key, entry in value.items():
            yield from _findings(entries, entry, item(path, key))
        return
    properties: JsonObject = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value and "default" not in properties.get(name, {}):
            yield Finding(child(path, name), REQUIRED)
    for name, field in properties.items():
        if name in value:
            yield from _findings(field, value[name], child(path, name))
    if properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield from _unknown(properties, value, path)


def _unknown(properties: Collection[str], value: Collection[str], path: str) -> Iterator[Finding]:
    for name in value:
        if name not in properties:
            near = _near_miss(name, properties)
            hint = f'; did you mean "{near}"?' if near else ""
            yield Finding(child(path, name), f"is not a known field{NO_EFFECT}{hint}", "warning")


def _near_miss(name: str, known: Iterable[str]) -> str:
    """Return the known name that is probably meant: a different letter case, or a typo."""
    spellings = {spelling.lower(): spelling for spelling in known}
    near = get_close_matches(str(name).lower(), spellings, n=1, cutoff=0.75)
    return spellings[near[0]] if near else ""


def _list(schema: JsonObject, value: list[JsonValue], path: str) -> Iterator[Finding]:
    yield from _size(schema, len(value), path, "Items", "items")
    items: JsonObject = schema.get("items") or {}
    for index, entry in enumerate(value):
        yield from _findings(items, entry, item(path, index))
    match schema.get("x-kubernetes-list-type"):
        case "set":
            yield from _repeated(enumerate(map(repr, value)), path)
        case "map":
            keys = schema["x-kubernetes-list-map-keys"]
            yield from _repeated(_keyed(value, keys), path)


def _keyed(value: list[JsonValue], keys: list[str]) -> Iterator[tuple[int, str]]:
    for index, entry in enumerate(value):
        if isinstance(entry, dict):
            yield index, repr([entry.get(key) for key in keys])


def _repeated(entries: Iterable[tuple[int, str]], path: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, entry in entries:
        if entry in seen:
            yield Finding(item(path, index), "is there already")
        seen.add(entry)


def _size(schema: JsonObject, size: int, path: str, what: str, name: str) -> Iterator[Finding]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and size < least:
        yield Finding(path, f"must have at least {least} {name}" if size else "must not be empty")
    if most is not None and size > most:
        yield Finding(path, f"must have at most {most} {name}")


def _string(schema: JsonObject, value: str, path: str) -> Iterator[Finding]:
    yield from _size(schema, len(value), path, "Length", "characters")
    pattern = schema.get("pattern")
    if pattern is not None and not _compiled(pattern).search(value):
        is_amount = pattern == quantity.PATTERN
        expected = "be an amount such as 500m, 2 or 1Gi" if is_amount else f"match {pattern}"
        yield Finding(path, f"must {expected}")
    match schema.get("format"):
        case "date-time" if not _compiled(_RFC3339).fullmatch(value):
            yield Finding(path, 'must be a time like "2006-01-02T15:04:05Z"')
        case "duration":
            yield from _duration(value, path)


def _duration(value: str, path: str) -> Iterator[Finding]:
    try:
        parse_duration(value)
    except DurationError:
        yield Finding(path, 'must be a duration like "1h30m" or "15s"')


def _number(schema: JsonObject, value: float, path: str) -> Iterator[Finding]:
    if not math.isfinite(value):
        yield Finding(path, "must be a finite number")
        return
    limit = _RANGES.get(schema.get("format") or "")
    if limit is not None and not -limit <= value < limit:
        yield Finding(path, f"must fit into {schema['format']}")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield Finding(path, f"must be greater than {least}")
        elif value < least:
            yield Finding(path, f"must be at least {least}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield Finding(path, f"must be less than {most}")
        elif value > most:
            yield Finding(path, f"must be at most {most}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
