"""Objects that differ from a valid one in a few fields."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject, JsonValue

Fields = Mapping[str, SearchStrategy[Any]]
"""Values by path, such as `networks.zones.0.name`; numbers are places in a list."""
_MOST: Final = 3


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a field that is removed."""
ANYTHING: Final = st.sampled_from(
    [None, "", "text", 0, 1, -1, 1.5, 3.0, 2**31, 2**63 - 1, True, False, [], {}, [None], ["a"]]
) | st.sampled_from([{"a": None}, {"a": "b"}, [{}], "0", "true"])
"""A JSON value of any type."""

BOOLEANS: Final = st.sampled_from([True, False, None, ABSENT])


class Change(NamedTuple):
    """A field with its new value."""

    path: str
    value: "JsonValue | _Absent"


def or_absent(*values: Any) -> SearchStrategy[Any]:
    """Return some values, or the sign that the field is removed."""
    return st.sampled_from([*values, ABSENT])


def changes(fields: Fields, *, most: int = _MOST) -> SearchStrategy[list[Change]]:
    """Return changes of some fields, often of one."""
    each = [values.map(partial(Change, path)) for path, values in fields.items()]
    return st.lists(st.one_of(each), max_size=most)


def free(fields: Fields) -> dict[str, SearchStrategy[Any]]:
    """Return the fields with values of other types, too, and the maps and lists above them."""
    above = {
        path.rsplit(".", depth)[0] for path in fields for depth in range(1, path.count(".") + 1)
    }
    found = {path: st.one_of(values, values, values, ANYTHING) for path, values in fields.items()}
    return {path: st.one_of(ANYTHING, st.just(ABSENT)) for path in sorted(above)} | found


def below(prefix: str, fields: Fields) -> dict[str, SearchStrategy[Any]]:
    """Return the fields of an object that contains theirs at a path."""
    return {f"{prefix}.{path}": values for path, values in fields.items()}


def changed(base: JsonObject, made: Sequence[Change]) -> JsonObject:
    """Return a copy with changes; those whose place does not exist are skipped."""
    found: JsonObject = _copy(base)
    for change in made:
        new = change.value
        _set(found, change.path.split("."), new if isinstance(new, _Absent) else _copy(new))
    return found


def one_of_changed(
    bases: Sequence[JsonObject], fields: Fields, *, most: int = _MOST
) -> SearchStrategy[JsonObject]:
    """Return one of some objects with changes."""
    return st.tuples(st.sampled_from(bases), changes(fields, most=most)).map(
        lambda drawn: changed(*drawn)
    )


def _copy(value: JsonValue) -> Any:
    return orjson.loads(orjson.dumps(value))


def _set(value: JsonValue, path: Sequence[str], new: "JsonValue | _Absent") -> None:
    name, *rest = path
    if isinstance(value, dict):
        if rest and (name in value or not rest[0].isdigit()):
            _set(value.setdefault(name, {}), rest, new)
        elif rest:
            return
        elif isinstance(new, _Absent):
            value.pop(name, None)
        else:
            value[name] = new
    elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
        if rest:
            _set(value[int(name)], rest, new)
        elif isinstance(new, _Absent):
            value.pop(int(name))
        else:
            value[int(name)] = new
