"""Ownership of fields: the manager writes only empty fields and its own (spec 50 §5, step 5).

A user's value is never overwritten. The object's managed fields record who wrote what, so no other
state is needed. A list counts as one value, owned by everyone who wrote a part of it. So does the
control plane endpoint: mixing halves of two addresses would produce a third.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at, without_nulls
from pergola.kube.patches import is_void, same

MANAGER: Final = "pergola-infra-manager"
_LONGEST_MANAGER: Final = 128
ENDPOINT: Final = "controlPlaneEndpoint"

Path: TypeAlias = tuple[str, ...]
Fields: TypeAlias = dict[str, "Fields"]
"""A tree of field names; a field without children is a value or an empty map."""


def author_of(name: str) -> str:
    """Return the field manager with which an external manager writes status."""
    return f"{MANAGER}/{name}".encode()[:_LONGEST_MANAGER].decode(errors="ignore")


class Owned(NamedTuple):
    """The fields of a part of an object, by writer."""

    ours: Fields
    others: Fields


class Decision(NamedTuple):
    """The changes to make.

    Attributes:
        fields: all fields to apply: those that are or become ours, and our maps with fields of
            others, because omitting such a map would remove those fields.
        differs: whether applying them changes anything.
        removed: a merge patch that removes those of our fields that are no longer desired.
        conflicts: one sentence for each value that others set differently.
    """

    fields: JsonObject
    differs: bool
    removed: JsonObject
    conflicts: tuple[str, ...]


def decide_fields(
    desired: JsonObject, live: JsonObject, owned: Owned, at: str = "spec"
) -> Decision:
    """Decide which desired fields may be applied.

    Args:
        live: the same part of the object in the cluster.
        at: the path of that part, for messages.
    """
    walk = _Walk(at)
    fields = walk.map(without_nulls(desired), live, owned, ())
    removed: JsonObject = {}
    for path in walk.removed:
        _put(removed, path, None)
    return Decision(fields, walk.differs, removed, tuple(walk.conflicts))


def owned_fields(obj: Mapping[str, Any], part: str, manager: str = MANAGER) -> Owned:
    """Return the writers of the fields below a part of an object, ignoring status writes."""
    owned = Owned({}, {})
    for entry in maps_at(obj, "metadata", "managedFields"):
        if not entry.get("subresource"):
            fields = _tree(map_at(entry, "fieldsV1", f"f:{part}"))
            _join(owned.ours if entry.get("manager") == manager else owned.others, fields)
    return owned


class _Walk:
    """One walk through the desired, live and owned fields of a part of an object."""

    def __init__(self, at: str) -> None:
        self._at = at
        self.differs = False
        self.removed: list[Path] = []
        self.conflicts: list[str] = []

    def map(self, desired: JsonObject, live: JsonObject, owned: Owned, path: Path) -> JsonObject:
        """Return the part of a map to apply."""
        fields: JsonObject = {}
        for name in dict.fromkeys([*desired, *owned.ours]):
            field = _Field(
                path=(*path, name),
                desired=desired.get(name),
                live=live.get(name),
                ours=owned.ours.get(name),
                others=owned.others.get(name),
            )
            value = self._endpoint(field) if field.path == (ENDPOINT,) else self._field(field)
            if value is not None:
                fields[name] = value
        return fields

    def _field(self, field: "_Field") -> JsonValue:
        """Return the value of a field to apply; None to omit it."""
        if field.is_map and (field.desired is None or isinstance(field.desired, dict)):
            return self._inside(field)
        if field.desired is None:
            return self._undesired(field)
        if field.is_settled:
            return None if field.ours is None else field.desired
        if field.is_empty or field.is_only_ours:
            self.differs = True
            return field.desired
        self.conflicts.append(
            f"{self._at}.{'.'.join(field.path)} is {_shown(field.live)}, "
            f"but the network has {_shown(field.desired)}"
        )
        return None if field.ours is None else field.live

    def _undesired(self, field: "_Field") -> JsonValue:
        """Remove a field that only we own; shared fields stay."""
        if field.ours is None:
            return None
        if field.others is None:
            self.removed.append(field.path)
            return None
        return field.live

    def _inside(self, field: "_Field") -> JsonObject | None:
        """Return the part of a nested map to apply."""
        if field.desired is None and field.is_only_ours:
            self.removed.append(field.path)
            return None
        owned = Owned(field.ours or {}, field.others or {})
        desired = field.desired if isinstance(field.desired, dict) else {}
        live = field.live if isinstance(field.live, dict) else {}
        kept = self.map(desired, live, owned, field.path)
        return kept if kept or field.ours is not None else None

    def _endpoint(self, field: "_Field") -> JsonValue:
        """Return the whole endpoint, or only our part if there is a conflict.

        An endpoint is kept when the network no longer has one, because machines use it.
        """
        walk = _Walk(self._at)
        value = walk._field(field)
        self.conflicts += walk.conflicts
        if field.desired is not None and not walk.conflicts:
            self.differs |= walk.differs
            return value
        if field.ours is None or not isinstance(field.live, dict):
            return None
        return {name: field.live[name] for name in field.ours if name in field.live}


class _Field(NamedTuple):
    """One field: its values, and the fields below it by writer, or None without a writer."""

    path: Path
    desired: JsonValue
    live: JsonValue
    ours: Fields | None
    others: Fields | None

    @property
    def is_settled(self) -> bool:
        """Whether it has the desired value.

        When an apply removes the last item of a list, the API server drops the list and the maps
        around it; writing it again would never end.
        """
        return same(self.live, self.desired) or (is_void(self.live) and is_void(self.desired))

    @property
    def is_only_ours(self) -> bool:
        """Whether we are the only writer of the field and of everything in it."""
        return self.ours is not None and self.others is None

    @property
    def is_map(self) -> bool:
        """Whether it has fields with their own owners.

        In an atomic map, only the map itself has owners.
        """
        if not isinstance(self.live, dict):
            return False
        known = {**(self.ours or {}), **(self.others or {})}
        has_owner = self.ours is not None or self.others is not None
        return not (self.live and has_owner and known.keys().isdisjoint(self.live))

    @property
    def is_empty(self) -> bool:
        """Whether it may be filled without overwriting a user's value.

        false and 0 are values, except for port 0: Go programs write the endpoint's port even if it
        is unset.
        """
        if isinstance(self.live, bool | float):
            return False
        if isinstance(self.live, int):
            return self.live == 0 and self.path == (ENDPOINT, "port")
        return not self.live


def _tree(fields: JsonObject) -> Fields:
    """Return the field names; fields below a keyed list belong to the list."""
    return {
        name.removeprefix("f:"): _tree(below) if isinstance(below, dict) else {}
        for name, below in fields.items()
        if name.startswith("f:")
    }


def _join(into: Fields, fields: Fields) -> None:
    for name, below in fields.items():
        _join(into.setdefault(name, {}), below)


def _put(fields: JsonObject, path: Path, value: JsonValue) -> None:
    for step in path[:-1]:
        fields = fields.setdefault(step, {})
    fields[path[-1]] = value


def _shown(value: JsonValue) -> str:
    return orjson.dumps(value).decode()
