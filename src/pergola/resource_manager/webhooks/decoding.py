"""Strict access to the object under review: fields of the wrong type are rejected, never ignored.

Handlers read only the parts that they need; the rest may have any shape. Null counts as absent, as
in an API server.
"""

from collections.abc import Mapping

from pergola.api.objects import JsonObject, JsonValue

_NAMES = {dict: "a map", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


class Undecodable(ValueError):
    """A field has the wrong type; the text contains its path, but never its value."""

    def __init__(self, path: tuple[str | int, ...], desired: str, value: object) -> None:
        found = _NAMES.get(type(value), "a number")
        super().__init__(f"{field(*path) or 'the object'}: expected {desired}, found {found}")


def field(*path: str | int) -> str:
    """Format a path as in `spec.containers[0].env`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def map_in(obj: JsonObject, *path: str | int) -> JsonObject:
    """Return the map at a path; a new, empty one if it is absent.

    Raises:
        Undecodable: The value has another type, or a field above it is not a map.
    """
    value = _at(obj, path)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Undecodable(path, "a map", value)
    return value


def maps_in(obj: JsonObject, *path: str | int) -> list[JsonObject]:
    """Return the list of maps at a path; empty if it is absent.

    Raises:
        Undecodable: The value has another type, or a field above it is not a map.
    """
    value = _at(obj, path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Undecodable(path, "a list", value)
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise Undecodable((*path, index), "a map", item)
    return value  # type: ignore[return-value] # as just asked


def text_in(obj: JsonObject, *path: str | int) -> str:
    """Return the string at a path; empty if it is absent.

    Raises:
        Undecodable: The value has another type, or a field above it is not a map.
    """
    value = _at(obj, path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Undecodable(path, "a string", value)
    return value


def flag_in(obj: JsonObject, *path: str | int) -> bool | None:
    """Return the boolean at a path; None if it is absent.

    Raises:
        Undecodable: The value has another type, or a field above it is not a map.
    """
    value = _at(obj, path)
    if value is None or isinstance(value, bool):
        return value
    raise Undecodable(path, "a boolean", value)


def texts_in(obj: JsonObject, *path: str | int) -> list[str]:
    """Return the list of strings at a path; empty if it is absent.

    Raises:
        Undecodable: The value has another type, or a field above it is not a map.
    """
    value = _at(obj, path)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Undecodable(path, "a list of strings", value)
    return value  # type: ignore[return-value] # as just asked


def labels_in(obj: JsonObject) -> Mapping[str, str]:
    """Return the labels; their values are not checked.

    Raises:
        Undecodable: They are not a map.
    """
    return map_in(obj, "metadata", "labels")


def _at(obj: JsonObject, path: tuple[str | int, ...]) -> JsonValue:
    value: JsonValue = obj
    for depth, step in enumerate(path):
        if isinstance(step, int):
            value = value[step]  # type: ignore[index] # indexes come from `maps_in`
        elif isinstance(value, dict):
            value = value.get(step)
        elif value is None:
            return None
        else:
            raise Undecodable(path[:depth], "a map", value)
    return value
