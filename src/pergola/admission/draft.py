"""An object being edited: the changes of a mutating webhook become a minimal JSON patch.

The original is never changed; reads see the edits. An edit without effect is not recorded, so that
a webhook makes no edits to its own output.
"""

from typing import Final, TypeAlias

from pergola.admission.review import Edit, Verdict
from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.patches import escape_pointer, same

Path: TypeAlias = tuple[str | int, ...]
"""Map keys and list indexes from the root: `("spec", "containers", 0, "env")`."""

_ABSENT: Final = object()


class Draft:
    """The edits of one object, in order.

    Raises:
        TypeError: In `set`, `append` and `remove`: the path leads through a value that is neither a
            map nor a list. API servers check types before calling a webhook.
    """

    def __init__(self, obj: JsonObject) -> None:
        self.object = obj
        self._edits: list[Edit] = []
        self._own: dict[int, JsonValue] = {}

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far."""
        return tuple(self._edits)

    def get(self, *path: str | int) -> JsonValue:
        """Return the current value at a path, or None if it is absent."""
        found = self._find(path)
        return None if found is _ABSENT else found  # type: ignore[return-value] # only this is not

    def set(self, path: Path, value: JsonValue, because: str) -> None:
        """Set the value at a path; create missing maps above it."""
        depth, present = self._reach(path)
        is_all = depth == len(path) - 1
        if is_all and present is not _ABSENT and same(present, value):  # type: ignore[arg-type] # as above
            return
        for name in reversed(path[depth + 1 :]):  # the highest missing map contains all others
            value = {str(name): value}
        path = path[: depth + 1]
        self._put(path, value)
        added = present is _ABSENT
        self._edits.append(Edit("add" if added else "replace", pointer(path), value, because))

    def append(self, path: Path, value: JsonValue, because: str) -> None:
        """Append a value to the list at a path; create the list if it is missing."""
        present = self._find(path)
        if not isinstance(present, list) or not present:
            self.set(path, [value], because)
            return
        self._writable(path).append(value)  # type: ignore[union-attr] # a list, as asked above
        self._edits.append(Edit("add", pointer((*path, "-")), value, because))

    def remove(self, path: Path, because: str) -> None:
        """Remove the value at a path, if there is one."""
        if self._find(path) is _ABSENT:
            return
        parent = self._writable(path[:-1])
        del parent[path[-1]]  # type: ignore[arg-type] # found, hence of the fitting type
        self._edits.append(Edit("remove", pointer(path), None, because))

    def verdict(self, unchanged: str, *, warnings: tuple[str, ...] = ()) -> Verdict:
        """Return the answer that allows the request with these edits.

        Args:
            unchanged: the reason for no change, if there are no edits.
        """
        if not self._edits:
            return Verdict(because=unchanged, warnings=warnings)
        return Verdict(edits=self.edits, warnings=warnings)

    def _find(self, path: Path) -> object:
        value: object = self.object
        for step in path:
            value = _child(value, step)
            if value is _ABSENT:
                return _ABSENT
        return value

    def _reach(self, path: Path) -> tuple[int, object]:
        """Return how many steps of a path lead through maps and lists, and the value after them.

        The last step does not count: it may lead to any value.
        """
        value: object = self.object
        last = len(path) - 1
        for depth, step in enumerate(path):
            child = _child(value, step)
            if depth == last or child is None or child is _ABSENT:
                return depth, child
            if not isinstance(child, dict | list):
                raise TypeError(f"{pointer(path[: depth + 1])} is neither a map nor a list")
            value = child
        raise TypeError("the path is empty")

    def _put(self, path: Path, value: JsonValue) -> None:
        parent = self._writable(path[:-1])
        parent[path[-1]] = value  # type: ignore[index] # a map, or an index that is there

    def _writable(self, path: Path) -> JsonObject | list[JsonValue]:
        """Return the map or list at a path, copied once so that the original stays unchanged."""
        self.object = parent = self._copied(self.object)
        for step in path:
            child = self._copied(parent[step])  # type: ignore[index] # it is there
            parent[step] = child  # type: ignore[index]
            parent = child
        return parent

    def _copied(self, value: JsonValue) -> JsonObject:
        if id(value) in self._own:
            return value  # type: ignore[return-value] # only maps and lists are recorded
        copy = value.copy()  # type: ignore[union-attr]
        self._own[id(copy)] = copy
        return copy  # type: ignore[return-value]


def _child(value: object, step: str | int) -> object:
    if isinstance(value, dict):
        return value.get(str(step), _ABSENT)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return _ABSENT


def pointer(path: Path) -> str:
    """Return a path as a JSON pointer."""
    return "".join(f"/{escape_pointer(step) if isinstance(step, str) else step}" for step in path)
