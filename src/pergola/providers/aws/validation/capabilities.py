"""Capabilities of images against the definitions of a CloudProfile (spec 31 §3)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid, unsupported
from pergola.api.objects import JsonObject, JsonValue, maps_at
from pergola.providers.aws.cloud_profile_config import ARCHITECTURE, Capabilities

ARCHITECTURES: Final = ("amd64", "arm64")
"""The architectures that Gardener knows."""


def definitions_of(spec: JsonObject) -> Capabilities:
    """Return the capabilities that a CloudProfile defines, with their values; often none."""
    return {
        str(each.get("name") or ""): texts_at(each, "values")
        for each in maps_at(spec, "machineCapabilities")
    }


def flavors_of(version: JsonObject, defined: Capabilities) -> list[Capabilities]:
    """Return the flavors of a version in a CloudProfile's images, complete; at least one."""
    flavors = [
        {name: texts_at(each, name) for name in each}
        for each in maps_at(version, "capabilityFlavors")
    ]
    return [complete(each, defined) for each in flavors or [{}]]


def complete(capabilities: Capabilities, defined: Capabilities) -> Capabilities:
    """Return the defined capabilities; one that is left out has all of its values."""
    return {name: capabilities.get(name, values) for name, values in defined.items()}


def are_equal(one: Capabilities, other: Capabilities) -> bool:
    """Return whether two complete sets of capabilities have the same values in any order."""
    return {name: set(values) for name, values in one.items()} == {
        name: set(values) for name, values in other.items()
    }


def check_capabilities(
    capabilities: Capabilities, defined: Capabilities, path: str
) -> Iterator[Cause]:
    """Yield all findings about the capabilities of a flavor."""
    for name, values in capabilities.items():
        if name not in defined:
            yield unsupported(path, name, defined)
            continue
        for index, value in enumerate(values):
            if value not in defined[name]:
                yield unsupported(f"{path}.{name}[{index}]", value, defined[name])
    chosen: list[JsonValue] = [*capabilities.get(ARCHITECTURE, ())]
    if len(defined.get(ARCHITECTURE, ())) > 1 and len(chosen) != 1:
        text = "must be exactly one: an image runs on machines of one architecture"
        yield invalid(f"{path}.{ARCHITECTURE}", chosen, text)


def shown(capabilities: Capabilities) -> str:
    """Return capabilities as a text, such as `architecture: arm64, network: fast or slow`."""
    parts = (f"{name}: {' or '.join(values)}" for name, values in sorted(capabilities.items()))
    return ", ".join(parts) or "no capabilities"


def texts_at(obj: JsonObject, field: str) -> list[str]:
    """Return a list of texts; anything else than a list counts as empty."""
    values = obj.get(field)
    return [str(value) for value in values] if isinstance(values, list) else []
