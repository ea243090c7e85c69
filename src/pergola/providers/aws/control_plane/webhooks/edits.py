"""Edits of maps, lists and commands that return a copy; odd parts stay as they are."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, cast

from pergola.api.objects import JsonObject, JsonValue

Adapt = Callable[[JsonObject], JsonObject]
"""Maps a part to the desired one, without changing its argument."""

TEMPLATE: Final = ("spec", "template")
POD: Final = (*TEMPLATE, "spec")


def at(obj: JsonObject, path: Sequence[str], adapt: Adapt) -> JsonObject:
    """Adapt the map at a path; a map that is not there stays missing."""
    if not path:
        return adapt(obj)
    below = obj.get(path[0])
    if not isinstance(below, dict):
        return obj
    return {**obj, path[0]: at(below, path[1:], adapt)}


def container(obj: JsonObject, name: str, adapt: Adapt) -> JsonObject:
    """Adapt the first container with a name."""

    def adapted(pod: JsonObject) -> JsonObject:
        if "containers" not in pod:
            return pod
        return {**pod, "containers": adapt_item(pod["containers"], "name", name, adapt)}

    return at(obj, POD, adapted)


def adapt_item(items: JsonValue, key: str, value: str, adapt: Adapt) -> JsonValue:
    """Adapt the first item of a list that has a value."""
    index = _index_of(items, key, value)
    if index is None or not isinstance(items, list):
        return items
    adapted: list[JsonValue] = [*items]
    adapted[index] = adapt(cast("JsonObject", items[index]))
    return adapted


def with_item(items: JsonValue, key: str, item: JsonObject) -> list[JsonValue]:
    """Replace the first item that has the same key, or append one."""
    found: list[JsonValue] = [*items] if isinstance(items, list) else []
    if (index := _index_of(found, key, item[key])) is None:
        return [*found, item]
    found[index] = item
    return found


def without_items(obj: JsonObject, field: str, key: str, values: Collection[str]) -> JsonObject:
    """Remove the items of a list by their keys, and a list that becomes empty."""
    items = obj.get(field)
    if not isinstance(items, list):
        return obj
    left = [item for item in items if not (isinstance(item, dict) and item.get(key) in values)]
    return _with_rest(obj, field, items, left)


def without_keys(obj: JsonObject, field: str, keys: Collection[str]) -> JsonObject:
    """Remove entries of a map, and a map that becomes empty."""
    entries = obj.get(field)
    if not isinstance(entries, dict):
        return obj
    left = {key: value for key, value in entries.items() if key not in keys}
    return _with_rest(obj, field, entries, left)


def has_item(items: JsonValue, key: str, value: str) -> bool:
    """Return whether a list has a map with a value."""
    return _index_of(items, key, value) is not None


def command(container: JsonObject, edit: Callable[[list[str]], list[str]]) -> JsonObject:
    """Edit the command of a container; an empty one is left out."""
    given = container.get("command")
    words = given if isinstance(given, list) else []
    if not all(isinstance(word, str) for word in words):
        return container
    edited = edit([*words])
    if edited == words:
        return container
    rest = {name: value for name, value in container.items() if name != "command"}
    return {**rest, "command": edited} if edited else rest


def with_flag(words: Sequence[str], flag: str, value: str) -> list[str]:
    """Set a flag wherever it is given, or append it."""
    prefix = f"--{flag}="
    if not any(word.startswith(prefix) for word in words):
        return [*words, prefix + value]
    return [prefix + value if word.startswith(prefix) else word for word in words]


def with_entry(words: Sequence[str], flag: str, entry: str) -> list[str]:
    """Add an entry to a flag with a comma-separated list, or append the flag."""
    prefix = f"--{flag}="
    if not any(word.startswith(prefix) for word in words):
        return [*words, prefix + entry]
    return [
        f"{word},{entry}"
        if word.startswith(prefix) and entry not in word.removeprefix(prefix).split(",")
        else word
        for word in words
    ]


def without_flags(words: Sequence[str], *prefixes: str) -> list[str]:
    """Remove the words that start with one of the prefixes."""
    return [word for word in words if not word.startswith(prefixes)]


def _index_of(items: JsonValue, key: str, value: JsonValue) -> int | None:
    if not isinstance(items, list):
        return None
    found = (i for i, item in enumerate(items) if isinstance(item, dict) and item.get(key) == value)
    return next(found, None)


def _with_rest(obj: JsonObject, field: str, before: object, left: JsonValue) -> JsonObject:
    if left == before:
        return obj
    if left:
        return {**obj, field: left}
    return {name: value for name, value in obj.items() if name != field}
