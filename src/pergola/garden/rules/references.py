"""Rules about extensions of a Garden and the objects that they refer to (spec 21 §7.4)."""

from collections.abc import Collection, Iterator
from typing import Final

from pergola.api.extensions_v1alpha1 import NamedResourceReference
from pergola.api.field_errors import Cause, duplicate, required, unsupported
from pergola.api.objects import JsonObject, maps_at
from pergola.api.operator_v1alpha1.garden import GardenExtension

_KINDS: Final = ("ConfigMap", "Secret")


def types_for_gardens(extensions: Collection[JsonObject]) -> frozenset[str]:
    """Return the types of Extension that the registered extensions serve for a garden."""
    return frozenset(
        str(resource.get("type"))
        for extension in extensions
        for resource in maps_at(extension, "spec", "resources")
        if resource.get("kind") == "Extension"
        and "garden" in (resource.get("clusterCompatibility") or ())
    )


def check_extensions(extensions: list[GardenExtension], known: Collection[str]) -> Iterator[Cause]:
    """Yield the findings about the extensions of a garden.

    Args:
        known: The types that registered extensions serve.
    """
    types = [extension.type for extension in extensions]
    for index, type_ in enumerate(types):
        path = f"spec.extensions[{index}].type"
        if type_ not in known:
            yield unsupported(path, type_, sorted(known))
        if type_ in types[:index]:
            yield duplicate(path, type_)


def check_resources(resources: list[NamedResourceReference], path: str) -> Iterator[Cause]:
    """Yield the findings about named references to objects."""
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        at, reference = f"{path}[{index}]", resource.resource_ref
        if not resource.name:
            yield required(f"{at}.name", "must provide a name")
        elif resource.name in seen:
            yield duplicate(f"{at}.name", resource.name)
        seen.add(resource.name)
        if not reference.name:
            yield required(f"{at}.resourceRef.name", "must provide a name")
        if not reference.api_version:
            yield required(f"{at}.resourceRef.apiVersion", "must provide an apiVersion")
        elif reference.api_version != "v1":
            yield unsupported(f"{at}.resourceRef.apiVersion", reference.api_version, ["v1"])
        if not reference.kind:
            yield required(f"{at}.resourceRef.kind", "must provide a kind")
        elif reference.kind not in _KINDS:
            yield unsupported(f"{at}.resourceRef.kind", reference.kind, _KINDS)
