"""References to Secrets and ConfigMaps in the fields of an object, found by paths."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api import kinds
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key

SECRET: Final = "Secret"  # noqa: S105 - a kind
CONFIG_MAP: Final = "ConfigMap"
KINDS: Final[Mapping[str, GroupVersionKind]] = {
    SECRET: kinds.SECRET,
    CONFIG_MAP: kinds.CONFIG_MAP,
}
"""The kinds that can be protected."""

Identity = tuple[str, Key]
"""A kind, `Secret` or `ConfigMap`, and a key."""


class Reference(NamedTuple):
    """A reference of one object to another.

    Attributes:
        kind: `Secret` or `ConfigMap`.
        field: The path of the field with its name, such as `spec.dns.providers[0].secretRef.name`.
    """

    kind: str
    key: Key
    field: str

    @property
    def identity(self) -> Identity:
        """Its kind and key, without the field."""
        return self.kind, self.key


def names_at(
    obj: JsonObject, paths: Iterable[str], kind: str, namespace: str
) -> Iterator[Reference]:
    """Yield the objects of a kind that fields name.

    Empty names and values of a wrong type are skipped: the object may have been written without a
    schema.

    Args:
        paths: The fields with the names; `[]` matches each item of a list.
        namespace: The namespace of all the named objects.
    """
    for path in paths:
        for field, name in _values(obj, path):
            if isinstance(name, str) and name:
                yield Reference(kind, Key(namespace, name), field)


def resources_at(obj: JsonObject, path: str, namespace: str) -> Iterator[Reference]:
    """Yield the Secrets and ConfigMaps among typed references: `{apiVersion, kind, name}`."""
    for field, resource in _values(obj, path):
        if not isinstance(resource, dict) or resource.get("apiVersion") != "v1":
            continue
        kind, name = resource.get("kind"), resource.get("name")
        if isinstance(kind, str) and kind in KINDS and isinstance(name, str) and name:
            yield Reference(kind, Key(namespace, name), f"{field}.name")


def _values(obj: JsonObject, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the values at a path, each with its full path; `[]` matches each item of a list."""
    found: list[tuple[str, JsonValue]] = [("", obj)]
    for step in path.split("."):
        name, is_list = step.removesuffix("[]"), step.endswith("[]")
        found = [
            (f"{field}.{name}".removeprefix("."), value[name])
            for field, value in found
            if isinstance(value, dict) and name in value
        ]
        if is_list:
            found = [
                (f"{field}[{index}]", item)
                for field, value in found
                if isinstance(value, list)
                for index, item in enumerate(value)
            ]
    yield from found
