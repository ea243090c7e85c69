"""What a field manager may write: what is empty, and what it wrote itself (spec 50 §5, step 5).

A user's value is never overwritten. Who wrote what is read from the managed fields, so that nothing
has to be remembered. Lists count as one value: who wrote one owns all of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.kube.patches import same

MANAGER: Final = "pergola-infra-manager"

Path: TypeAlias = tuple[str, ...]
_ABSENT: Final[tuple[JsonValue, ...]] = (None, "", 0, [], {})


class Decision(NamedTuple):
    """What becomes of the fields that are wanted.

    Attributes:
        fields: what shall be applied: all that is ours, or becomes ours.
        differs: whether anything would change by it.
        conflicts: what somebody else wants otherwise, one sentence each.
    """

    fields: JsonObject
    differs: bool
    conflicts: tuple[str, ...]


def decide_fields(
    wanted: JsonObject, live: JsonObject, owned: frozenset[Path], at: str = "spec"
) -> Decision:
    """Which of the wanted fields may be applied.

    Args:
        live: the same part of the object as it is.
        owned: the paths in it that we wrote.
        at: the part's name, for sentences.
    """
    fields: JsonObject = {}
    kept: set[Path] = set()
    conflicts: list[str] = []
    differs = False
    for path, value in leaves(wanted):
        now = _value_at(live, path)
        is_ours = path in owned
        if now not in _ABSENT and not is_ours:
            if not same(now, value):
                conflicts.append(
                    f"{at}.{'.'.join(path)} is {_shown(now)}, but the network has {_shown(value)}"
                )
            continue
        _put(fields, path, value)
        kept.add(path)
        differs = differs or not same(now, value)
    return Decision(fields, differs or bool(owned - kept), tuple(conflicts))


def owned_paths(obj: Mapping[str, Any], part: str, manager: str = MANAGER) -> frozenset[Path]:
    """The fields below a part of an object that a manager has applied."""
    found: set[Path] = set()
    for entry in maps_at(obj, "metadata", "managedFields"):
        if entry.get("manager") == manager and not entry.get("subresource"):
            found.update(_owned(map_at(entry, "fieldsV1", f"f:{part}"), ()))
    return frozenset(found)


def leaves(value: JsonObject, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """All values that are no maps, with their paths; an empty map counts as a value."""
    for name, item in value.items():
        if isinstance(item, dict) and item:
            yield from leaves(item, (*path, name))
        else:
            yield (*path, name), item


def _owned(fields: JsonObject, path: Path) -> Iterator[Path]:
    """Paths of leaves; below a list, whose items have keys of another form, it is the list's."""
    names = {name.removeprefix("f:"): below for name, below in fields.items() if name[:2] == "f:"}
    if not names:
        if path:
            yield path
        return
    for name, below in names.items():
        yield from _owned(below if isinstance(below, dict) else {}, (*path, name))


def _value_at(value: JsonValue, path: Path) -> JsonValue:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(fields: JsonObject, path: Path, value: JsonValue) -> None:
    for step in path[:-1]:
        fields = fields.setdefault(step, {})
    fields[path[-1]] = value


def _shown(value: JsonValue) -> str:
    return orjson.dumps(value).decode()
