"""CloudProfiles: the images of `CloudProfileConfig`, and those that Gardener offers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pergola.api.field_errors import Cause, forbidden, required, unsupported
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.api.schema.read import Malformed
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.cloud_profile_config import (
    AMD64,
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    Ami,
    Capabilities,
    CloudProfileConfig,
    ImageVersion,
    MachineImage,
    RegionImage,
)
from pergola.providers.aws.validation.capabilities import (
    ARCHITECTURES,
    are_equal,
    check_capabilities,
    complete,
    definitions_of,
    flavors_of,
    shown,
    texts_at,
)
from pergola.providers.aws.validation.written import malformed

CONFIG: Final = "spec.providerConfig"
IMAGES: Final = f"{CONFIG}.machineImages"

Images = Mapping[str, Mapping[str, ImageVersion]]
"""Versions of images by their names; of several with one name, the last."""


def check_cloud_profile(profile: JsonObject) -> Iterator[Cause]:
    """Yield all findings about a CloudProfile."""
    spec = map_at(profile, "spec")
    value = spec.get("providerConfig")
    if value is None:
        yield required(CONFIG, "list the AMIs of the machine images in a CloudProfileConfig")
        return
    gvk = CLOUD_PROFILE_CONFIG
    try:
        config = read_strict(CloudProfileConfig, value, gvk, path=CONFIG, needs_type=True)
    except Malformed as error:
        yield from malformed(error)
        return
    defined = definitions_of(spec)
    if not config.machine_images:
        yield required(IMAGES, "list at least one machine image")
    yield from check_images(config.machine_images, defined)
    yield from _offered(spec, images_of(config.machine_images), defined)


def check_images(images: Iterable[MachineImage], defined: Capabilities) -> Iterator[Cause]:
    """Yield all findings about the images of a config.

    Args:
        defined: the capabilities that the CloudProfile defines; empty for older ones.
    """
    for index, image in enumerate(images):
        path = f"{IMAGES}[{index}]"
        if not image.name:
            yield required(f"{path}.name", "must not be empty")
        if not image.versions:
            yield required(f"{path}.versions", "list at least one version")
        for place, version in enumerate(image.versions):
            yield from _version(f"{path}.versions[{place}]", version, defined)


def images_of(images: Iterable[MachineImage]) -> Images:
    """Return the images of a config by their names."""
    return {image.name: {each.version: each for each in image.versions} for image in images}


def architectures_of(regions: Iterable[RegionImage]) -> list[str]:
    """Return the architectures of a version in the older format, without repetitions."""
    return list(dict.fromkeys(region.architecture for region in regions))


def _version(path: str, version: ImageVersion, defined: Capabilities) -> Iterator[Cause]:
    if not version.version:
        yield required(f"{path}.version", "must not be empty")
    flavors = version.capability_flavors
    if not defined:
        yield from _regions(path, version)
        if flavors:
            text = "the CloudProfile defines no machineCapabilities: list regions instead"
            yield forbidden(f"{path}.capabilityFlavors", text)
    elif version.regions and flavors:
        text = "must not be set together with capabilityFlavors: a version has one format"
        yield forbidden(f"{path}.regions", text)
    elif not flavors:
        yield from _regions(path, version)
    for index, flavor in enumerate(flavors if defined and not version.regions else ()):
        place = f"{path}.capabilityFlavors[{index}]"
        yield from check_capabilities(flavor.capabilities, defined, f"{place}.capabilities")
        yield from _amis(place, flavor.regions)
        for number, region in enumerate(flavor.regions):
            if region.architecture is not None:
                text = "the architecture is one of the capabilities: leave it out here"
                yield forbidden(f"{place}.regions[{number}].architecture", text)


def _regions(path: str, version: ImageVersion) -> Iterator[Cause]:
    yield from _amis(path, version.regions)
    for index, region in enumerate(version.regions):
        if region.architecture not in ARCHITECTURES:
            field = f"{path}.regions[{index}].architecture"
            yield unsupported(field, region.architecture, ARCHITECTURES)


def _amis(path: str, regions: Sequence[Ami]) -> Iterator[Cause]:
    if not regions:
        yield required(f"{path}.regions", "list at least one region")
    for index, region in enumerate(regions):
        if not region.name:
            yield required(f"{path}.regions[{index}].name", "must not be empty")
        if not region.ami:
            yield required(f"{path}.regions[{index}].ami", "must not be empty")


def _offered(spec: JsonObject, images: Images, defined: Capabilities) -> Iterator[Cause]:
    """Check that the config has what Gardener offers."""
    for index, image in enumerate(maps_at(spec, "machineImages")):
        path, name = f"spec.machineImages[{index}]", str(image.get("name") or "")
        versions = maps_at(image, "versions")
        if versions and name not in images:
            yield required(path, f"{IMAGES} must have image {name}")
            continue
        for place, version in enumerate(versions):
            number = str(version.get("version") or "")
            title, where = f"{name}@{number}", f"{path}.versions[{place}]"
            found = images[name].get(number)
            if found is None:
                yield required(where, f"{IMAGES} must have version {title}")
            elif defined:
                yield from _flavors(where, title, flavors_of(version, defined), found, defined)
            else:
                yield from _architectures(where, title, version, found)


def _architectures(
    path: str, title: str, version: JsonObject, found: ImageVersion
) -> Iterator[Cause]:
    present = architectures_of(found.regions)
    for each in texts_at(version, "architectures") or [AMD64]:
        if each not in ARCHITECTURES:
            yield unsupported(f"{path}.architectures", each, ARCHITECTURES)
        if each not in present:
            yield required(path, f"{IMAGES} must have {title} for architecture {each}")


def _flavors(
    path: str,
    title: str,
    offered: Sequence[Capabilities],
    found: ImageVersion,
    defined: Capabilities,
) -> Iterator[Cause]:
    present = [complete(each.capabilities, defined) for each in found.capability_flavors]
    architectures = architectures_of(found.regions)
    for index, flavor in enumerate(offered):
        where = f"{path}.capabilityFlavors[{index}]"
        if found.regions and not present:
            for each in flavor.get(ARCHITECTURE, ()):
                if each not in architectures:
                    yield required(where, f"{IMAGES} must have {title} for architecture {each}")
        elif not any(are_equal(flavor, each) for each in present):
            yield required(where, f"{IMAGES} must have {title} with {shown(flavor)}")
