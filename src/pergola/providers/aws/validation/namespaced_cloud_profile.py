"""NamespacedCloudProfiles: images that a project adds to those of a CloudProfile."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid, required, unsupported
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.api.schema.read import Malformed
from pergola.extensions.garden import CLOUD_PROFILE
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.cloud_profile_config import (
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    Capabilities,
    CloudProfileConfig,
    ImageVersion,
)
from pergola.providers.aws.validation.capabilities import (
    are_equal,
    complete,
    definitions_of,
    flavors_of,
    shown,
    texts_at,
)
from pergola.providers.aws.validation.cloud_profile import (
    CONFIG,
    IMAGES,
    Images,
    architectures_of,
    check_images,
    images_of,
)
from pergola.providers.aws.validation.written import malformed

PARENT: Final = "spec.parent"

_Offered = Mapping[str, Mapping[str, JsonObject]]
"""Versions of images in a CloudProfile's `machineImages`; of several with one name, the last."""


def check_parent_kind(profile: JsonObject) -> Iterator[Cause]:
    """Yield a finding if the parent is something else than a CloudProfile."""
    kind = map_at(profile, "spec", "parent").get("kind")
    if kind != CLOUD_PROFILE.kind:
        yield unsupported(f"{PARENT}.kind", kind, [CLOUD_PROFILE.kind])


def check_namespaced_cloud_profile(profile: JsonObject, parent: JsonObject) -> Iterator[Cause]:
    """Yield all findings about a NamespacedCloudProfile.

    Args:
        parent: its CloudProfile.
    """
    spec, above = map_at(profile, "spec"), map_at(parent, "spec")
    value, config = spec.get("providerConfig"), CloudProfileConfig()
    if value is not None:
        gvk = CLOUD_PROFILE_CONFIG
        try:
            config = read_strict(CloudProfileConfig, value, gvk, path=CONFIG, needs_type=True)
        except Malformed as error:
            yield from malformed(error)
            return
    yield from check_images(config.machine_images, definitions_of(above))
    offered, of_parent = _offered_by(spec), _offered_by(above)
    yield from _unmapped(offered, of_parent, images_of(config.machine_images), above)
    yield from _superfluous(config, offered, of_parent)


def _offered_by(spec: JsonObject) -> _Offered:
    return {
        str(image.get("name") or ""): {
            str(each.get("version") or ""): each for each in maps_at(image, "versions")
        }
        for image in maps_at(spec, "machineImages")
    }


def _unmapped(
    offered: _Offered, of_parent: _Offered, images: Images, parent: JsonObject
) -> Iterator[Cause]:
    """Check that the config has what the project offers; its parent has the rest."""
    defined = definitions_of(parent)
    for name, versions in offered.items():
        if name not in of_parent and name not in images:
            yield required(IMAGES, f"must have image {name}, which spec.machineImages offers")
            continue
        for number, version in versions.items():
            title, found = f"{name}@{number}", images.get(name, {}).get(number)
            if found is not None:
                yield from _mapped(title, version, found, defined)
            elif number not in of_parent.get(name, {}):
                text = f"must have version {title}, which spec.machineImages offers"
                yield required(IMAGES, text)


def _mapped(
    title: str, version: JsonObject, found: ImageVersion, defined: Capabilities
) -> Iterator[Cause]:
    if not defined:
        return _architectures(title, version, found)
    offered = flavors_of(version, defined)
    if found.regions and not found.capability_flavors:
        return _flavors_by_region(title, offered, found)
    return _flavors(title, offered, found, defined)


def _architectures(title: str, version: JsonObject, found: ImageVersion) -> Iterator[Cause]:
    """Compare the architectures of a version with those of each region."""
    offered = texts_at(version, "architectures")
    regions: dict[str, list[str]] = {}
    for region in found.regions:
        regions.setdefault(region.name, []).append(region.architecture)
        if region.architecture not in offered:
            yield forbidden(IMAGES, _excess(f"{title} for {region.architecture} in {region.name}"))
    for each in offered:
        if not regions:
            yield required(IMAGES, f"must have {title} for architecture {each}")
        for name, present in regions.items():
            if each not in present:
                yield required(IMAGES, f"must have {title} for architecture {each} in {name}")


def _flavors_by_region(
    title: str, offered: list[Capabilities], found: ImageVersion
) -> Iterator[Cause]:
    """Compare flavors with a version in the older format, which knows only architectures."""
    present = architectures_of(found.regions)
    desired = dict.fromkeys(each for flavor in offered for each in flavor.get(ARCHITECTURE, ()))
    for each in present:
        if each not in desired:
            yield forbidden(IMAGES, _excess(f"{title} for architecture {each}"))
    for flavor in offered:
        for each in flavor.get(ARCHITECTURE, ()):
            if each not in present:
                text = f"must have {title} for architecture {each}, with {shown(flavor)}"
                yield required(IMAGES, text)


def _flavors(
    title: str, offered: list[Capabilities], found: ImageVersion, defined: Capabilities
) -> Iterator[Cause]:
    regions: dict[str, list[Capabilities]] = {}
    for flavor in found.capability_flavors:
        whole = complete(flavor.capabilities, defined)
        if not _contains(offered, whole):
            yield forbidden(IMAGES, _excess(f"{title} with {shown(flavor.capabilities)}"))
        for region in flavor.regions:
            regions.setdefault(region.name, []).append(whole)
    present = [complete(each.capabilities, defined) for each in found.capability_flavors]
    for desired in offered:
        if not _contains(present, desired):
            yield required(IMAGES, f"must have {title} with {shown(desired)}")
            continue
        for name, there in regions.items():
            if not _contains(there, desired):
                yield required(IMAGES, f"must have {title} with {shown(desired)} in {name}")


def _contains(flavors: list[Capabilities], flavor: Capabilities) -> bool:
    return any(are_equal(each, flavor) for each in flavors)


def _excess(what: str) -> str:
    return f"has {what}, which spec.machineImages does not offer"


def _superfluous(
    config: CloudProfileConfig, offered: _Offered, of_parent: _Offered
) -> Iterator[Cause]:
    """Check that everything in the config is offered by the project, and not by its parent."""
    for index, image in enumerate(config.machine_images):
        path = f"{IMAGES}[{index}]"
        for place, version in enumerate(image.versions):
            if version.version in of_parent.get(image.name, {}):
                text = f"the CloudProfile has {image.name}@{version.version}: give yours a version"
                yield forbidden(f"{path}.versions[{place}]", text)
        if image.name not in offered:
            yield required(path, f"spec.machineImages must offer image {image.name}, too")
            continue
        for place, version in enumerate(image.versions):
            if version.version not in offered[image.name]:
                where, title = f"{path}.versions[{place}]", f"{image.name}@{version.version}"
                yield invalid(where, title, "spec.machineImages must offer this version, too")
