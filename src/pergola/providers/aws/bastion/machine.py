"""Machine type and image of a bastion, from the CloudProfile (spec 30 §10.1). Pure."""

from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_leniently
from pergola.kube.quantities import parse_quantity
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
)
from pergola.providers.aws.image_selection import definitions, flavor, machine_capabilities

_UNUSABLE: Final = ("expired", "preview", "deprecated")


class Machine(NamedTuple):
    """Parameters of RunInstances."""

    type: str
    image: str


def machine_of(cloud_profile: JsonObject | None, region: str) -> Machine:
    """Return the machine for bastions: the profile's choice, else the smallest with an image.

    Raises:
        ExtensionError: the profile has no machine type, or none of them has an image in this
            region.
    """
    spec = map_at(cloud_profile or {}, "spec")
    known, images = definitions(spec), _images(spec)
    config = read_leniently(CloudProfileConfig, spec.get("providerConfig"), CLOUD_PROFILE_CONFIG)
    architectures: dict[str, None] = {}
    for machine in _machine_types(spec):
        architecture = str(machine.get("architecture") or AMD64)
        capabilities = machine_capabilities(machine, architecture, known)
        architectures |= dict.fromkeys(capabilities[ARCHITECTURE])
        for image, version in images:
            found = flavor(config, image, version, region, capabilities, known)
            if found is not None and found.ami:
                return Machine(str(machine["name"]), found.ami)
    raise configuration_problem(
        f"the CloudProfile has no image for {' or '.join(architectures)} machines in {region} that "
        "a bastion could run: add one to spec.providerConfig.machineImages, or name another one in "
        "spec.bastion.machineImage"
    )


def _machine_types(spec: JsonObject) -> list[JsonObject]:
    """Return the machine types for a bastion, the best first: the named one, else by size."""
    named = map_at(spec, "bastion", "machineType").get("name")
    types = maps_at(spec, "machineTypes")
    if named:
        for machine in types:
            if machine.get("name") == named:
                return [machine]
        raise configuration_problem(
            f'spec.bastion.machineType: the CloudProfile has no machine type "{named}"'
        )
    usable = [machine for machine in types if machine.get("usable") is not False]
    if not usable:
        raise configuration_problem("the CloudProfile has no machine type for a bastion: add one")
    return sorted(usable, key=_size)


def _size(machine: JsonObject) -> tuple[float, float, float, str]:
    def amount(field: str) -> float:
        return float(parse_quantity(str(machine.get(field) or "0")))

    return amount("gpu"), amount("cpu"), amount("memory"), str(machine.get("name"))


def _images(spec: JsonObject) -> list[tuple[str, str]]:
    """Return images and versions, the best first: those named, else the newest of each image."""
    desired = map_at(spec, "bastion", "machineImage")
    name, version = desired.get("name"), desired.get("version")
    found: list[tuple[str, str]] = []
    for image in maps_at(spec, "machineImages"):
        if name and image.get("name") != name:
            continue
        versions = [
            str(each.get("version"))
            for each in maps_at(image, "versions")
            if each.get("version") == version
            or (not version and each.get("classification") not in _UNUSABLE)
        ]
        newest = sorted(versions, key=_numbers, reverse=True)
        found += [(str(image.get("name")), each) for each in newest]
    return found


def _numbers(version: str) -> list[int]:
    release = version.partition("-")[0].partition("+")[0]
    return [int(part) if part.isdigit() else 0 for part in release.split(".")]
