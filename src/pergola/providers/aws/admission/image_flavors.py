"""Mutators of CloudProfiles and NamespacedCloudProfiles (spec 31 §8).

Where a CloudProfile defines capabilities, each version of an image lists its flavors, which follow
from the AMIs in the `CloudProfileConfig`. The images of a NamespacedCloudProfile are merged over
those that its status has from the parent, so that Shoots find all of them in one place.
"""

from typing import Final

from pergola.admission.draft import Draft, Path
from pergola.api.objects import JsonObject, JsonValue, generation_of, map_at
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.admission.parents import Parents
from pergola.providers.aws.cloud_profile_config import (
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
    ImageFlavor,
    ImageVersion,
    MachineImage,
)
from pergola.providers.aws.validation.capabilities import definitions_of
from pergola.providers.aws.validation.cloud_profile import architectures_of

_SPEC: Final[Path] = ("spec", "providerConfig")
_STATUS: Final[Path] = ("status", "cloudProfileSpec", "providerConfig")
_IMAGES: Final[Path] = ("spec", "machineImages")
_FLAVORS: Final = "the capabilities of the version's AMIs"
_MERGED: Final = "the images of the project, over those of the CloudProfile"


def mutate_cloud_profile(draft: Draft, _: JsonObject | None) -> None:
    """Set the flavors of a CloudProfile's images, if it defines capabilities."""
    if draft.get(*_SPEC) is not None and definitions_of(map_at(draft.object, "spec")):
        _set_flavors(draft, _config_at(draft, _SPEC))


class NamespacedCloudProfileMutator:
    """Sets the flavors of a NamespacedCloudProfile's images, and merges its status."""

    def __init__(self, parents: Parents) -> None:
        self._parents = parents

    async def __call__(self, draft: Draft, _: JsonObject | None) -> None:
        """Mutate a NamespacedCloudProfile.

        Raises:
            ExtensionError: its config is invalid, or its parent does not exist.
        """
        if draft.get(*_SPEC) is None:
            return
        config = _config_at(draft, _SPEC)
        name = self._parents.name_of(draft.object)
        if name and draft.get(*_IMAGES):
            parent = await self._parents.find(name)
            if parent is None:
                raise configuration_problem(
                    f"spec.parent.name: CloudProfile {name} does not exist: create it first"
                )
            if definitions_of(map_at(parent, "spec")):
                _set_flavors(draft, config)
        seen = map_at(draft.object, "status").get("observedGeneration") or 0
        if seen == generation_of(draft.object) and draft.get(*_STATUS) is not None:
            stored = _config_at(draft, _STATUS)
            draft.set(_STATUS, _merged(config, stored), because=_MERGED)


def _config_at(draft: Draft, path: Path) -> CloudProfileConfig:
    where = ".".join(map(str, path))
    try:
        return read_strict(CloudProfileConfig, draft.get(*path), CLOUD_PROFILE_CONFIG, path=where)
    except Malformed as error:
        raise configuration_problem(str(error)) from None


def _set_flavors(draft: Draft, config: CloudProfileConfig) -> None:
    places = _places(draft.get(*_IMAGES))
    for image in config.machine_images:
        place = places.get(image.name)
        if place is None:
            continue
        path: Path = (*_IMAGES, place, "versions")
        versions = _places(draft.get(*path), "version")
        for version in image.versions:
            flavors = _flavors(version)
            if version.version in versions and flavors:
                where = (*path, versions[version.version], "capabilityFlavors")
                draft.set(where, flavors, because=_FLAVORS)


def _places(items: JsonValue, field: str = "name") -> dict[str, int]:
    """Return the first index of each name in a list."""
    found: dict[str, int] = {}
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            found.setdefault(str(item.get(field) or ""), index)
    return found


def _flavors(version: ImageVersion) -> list[JsonValue]:
    """Return the capabilities of a version's AMIs; one flavor per architecture in older entries."""
    if version.capability_flavors:
        return [_lists(flavor) for flavor in version.capability_flavors]
    return [{ARCHITECTURE: [each]} for each in sorted(architectures_of(version.regions))]


def _lists(flavor: ImageFlavor) -> JsonObject:
    return dict(flavor.capabilities)


def _merged(config: CloudProfileConfig, stored: CloudProfileConfig) -> JsonObject:
    """Return the stored config with the images of another one, sorted."""
    images = {image.name: image for image in stored.machine_images}
    for name, image in {each.name: each for each in config.machine_images}.items():
        images[name] = _over(images[name], image) if name in images else image
    gvk = CLOUD_PROFILE_CONFIG
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "machineImages": [_image(images[name]) for name in sorted(images)],
    }


def _over(stored: MachineImage, image: MachineImage) -> MachineImage:
    versions = {each.version: each for each in (*stored.versions, *image.versions)}
    return MachineImage(name=image.name, versions=list(versions.values()))


def _image(image: MachineImage) -> JsonObject:
    versions = sorted(image.versions, key=lambda each: each.version)
    return {"name": image.name, "versions": [_version(each) for each in versions]}


def _version(version: ImageVersion) -> JsonObject:
    found: JsonObject = {"version": version.version}
    if version.regions:
        found["regions"] = [each.to_complete_json() for each in version.regions]
    if version.capability_flavors:
        found["capabilityFlavors"] = [_flavor(each) for each in version.capability_flavors]
    return found


def _flavor(flavor: ImageFlavor) -> JsonObject:
    found: JsonObject = {}
    if flavor.regions:
        found["regions"] = [each.to_complete_json() for each in flavor.regions]
    if flavor.capabilities:
        found["capabilities"] = flavor.capabilities
    return found
