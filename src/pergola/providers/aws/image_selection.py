"""The selection of a machine image in a CloudProfile (spec 31 §3, GEP-33). Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    ARCHITECTURE,
    Capabilities,
    CloudProfileConfig,
    ImageVersion,
)

ARM64: Final = "arm64"


class Flavor(NamedTuple):
    """An image of a version, in one region."""

    ami: str
    capabilities: Capabilities


def definitions(profile: JsonObject) -> Capabilities:
    """Return all values of the capabilities that a CloudProfile defines, in its order.

    Args:
        profile: the spec of a CloudProfile; an older one defines none, and has two architectures.
    """
    defined = {
        str(each.get("name")): _texts(each.get("values"))
        for each in maps_at(profile, "machineCapabilities")
    }
    return defined or {ARCHITECTURE: [AMD64, ARM64]}


def machine_capabilities(
    machine: JsonObject, architecture: str, known: Capabilities
) -> Capabilities:
    """Return the capabilities of a machine type.

    Args:
        architecture: of the pool, for a machine type that does not name its own.
        known: the definitions.
    """
    own = {name: _texts(values) for name, values in map_at(machine, "capabilities").items()}
    if ARCHITECTURE in own:
        return own
    values = known.get(ARCHITECTURE, ())
    return {**own, ARCHITECTURE: values if len(values) == 1 else [architecture]}


def flavor(
    config: CloudProfileConfig,
    name: str,
    version: str,
    region: str,
    machine: Capabilities,
    known: Capabilities,
) -> Flavor | None:
    """Return the image for a machine in a region; None if there is none, or not one alone.

    Of several that fit, it is the one with the first value of the first capability.

    Args:
        machine: the capabilities of the machine.
        known: the definitions, in the order of preference; a machine or an image without one of
            them has all of its values.
    """
    for image in config.machine_images:
        versions = (each for each in image.versions if each.version == version)
        offered = [*_in_region(versions, region)] if image.name == name else []
        if offered:
            return _best(
                [each for each in offered if fit(each.capabilities, machine, known)], known
            )
    return None


def _in_region(versions: Iterable[ImageVersion], region: str) -> Iterator[Flavor]:
    for version in versions:
        if not version.capability_flavors:
            amis = {each.architecture: each.ami for each in version.regions if each.name == region}
            for architecture, ami in amis.items():
                yield Flavor(ami, {ARCHITECTURE: [architecture]})
        for each in version.capability_flavors:
            # Of a region that is named twice, the last one counts.
            for found in [image for image in each.regions if image.name == region][-1:]:
                yield Flavor(found.ami, each.capabilities)


def _best(fitting: Sequence[Flavor], known: Capabilities) -> Flavor | None:
    for name, values in known.items():
        for value in values:
            preferred = [each for each in fitting if value in each.capabilities.get(name, values)]
            fitting = preferred or fitting
    return fitting[0] if len(fitting) == 1 else None


def fit(image: Capabilities, machine: Capabilities, known: Capabilities) -> bool:
    """Return whether an image and a machine have a value of each capability in common."""
    return all(
        set(image.get(name, values)) & set(machine.get(name, values))
        for name, values in known.items()
    )


def _texts(values: JsonValue) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []
