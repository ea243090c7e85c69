"""The kinds and types that the operator's Extensions serve (spec 21 §13.1).

Types are compared case-insensitively, as everywhere in Gardener.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, maps_at, name_of
from pergola.extension_api.kinds import EXTENSION

_GARDEN: Final = "garden"


class Need(NamedTuple):
    """A kind and a type of extension resources, such as `DNSRecord/aws-route53`."""

    kind: str
    type: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.type}"


def extensions_for(need: Need, extensions: Iterable[JsonObject]) -> tuple[str, ...]:
    """Return the names of the operator's Extensions that serve a kind and type."""
    return tuple(
        name_of(extension)
        for extension in extensions
        if any(_serves(resource, need) for resource in maps_at(extension, "spec", "resources"))
    )


def resource_for(need: Need, extensions: Iterable[JsonObject]) -> JsonObject:
    """Return how an Extension declares a kind and type; an empty map if none does."""
    found = (
        resource
        for extension in extensions
        for resource in maps_at(extension, "spec", "resources")
        if _serves(resource, need)
    )
    return next(found, {})


def auto_enabled(extensions: Iterable[JsonObject]) -> Iterator[str]:
    """Yield the types of Extensions that every garden uses."""
    for extension in extensions:
        for resource in maps_at(extension, "spec", "resources"):
            if resource.get("kind") == EXTENSION.kind and _GARDEN in (
                resource.get("autoEnable") or ()
            ):
                yield str(resource.get("type"))


def _serves(resource: JsonObject, need: Need) -> bool:
    same_type = str(resource.get("type")).casefold() == need.type.casefold()
    return resource.get("kind") == need.kind and same_type
