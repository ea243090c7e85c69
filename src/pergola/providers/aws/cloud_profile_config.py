"""`CloudProfileConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 31 §3).

Missing texts are empty, as the original reads them: admission says what must be set.
"""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at
from pergola.api.schema.declare import Value
from pergola.providers.aws.config import GROUP

CLOUD_PROFILE_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "CloudProfileConfig")
AMD64: Final = "amd64"
ARCHITECTURE: Final = "architecture"
"""The capability that every machine and image has, which older profiles name as a field."""

Capabilities = Mapping[str, Sequence[str]]
"""The possible values of capabilities, such as `{"architecture": ["amd64"]}`."""


class Ami(Value):
    """An image in one region."""

    name: str = ""
    """The region, such as `eu-west-1`."""
    ami: str = ""
    """The id of the image in that region."""


class RegionImage(Ami):
    """The image of a version in one region."""

    architecture: str = AMD64
    """The processor architecture of the image."""


class FlavorImage(Ami):
    """The image of a flavor in one region."""

    architecture: str | None = None
    """Must not be set: the architecture is one of the capabilities."""


class ImageFlavor(Value):
    """The images of a version for machines with certain capabilities."""

    regions: list[FlavorImage] = []
    """The image in each region."""
    capabilities: dict[str, list[str]] = {}
    """Values of capabilities; a capability that is absent has all of its values."""


class ImageVersion(Value):
    """A version of a machine image: its flavors or, in older profiles, its regions."""

    version: str = ""
    """The version, such as `1592.3.0`."""
    regions: list[RegionImage] = []
    """The image in each region."""
    capability_flavors: list[ImageFlavor] = []
    """The images by the capabilities of machines."""

    def images(self) -> Iterator[tuple[Capabilities, Ami]]:
        """Yield the images with their capabilities."""
        for image in self.regions:
            yield {ARCHITECTURE: [image.architecture]}, image
        for flavor in self.capability_flavors:
            for found in flavor.regions:
                yield flavor.capabilities, found


class MachineImage(Value):
    """A machine image."""

    name: str = ""
    """The name of the image in the CloudProfile."""
    versions: list[ImageVersion] = []
    """Its versions."""


class CloudProfileConfig(Value):
    """Machine images in AWS."""

    machine_images: list[MachineImage] = []
    """Operating systems."""

    def ami(
        self, name: str, version: str, region: str, machine: Capabilities, known: Capabilities
    ) -> str | None:
        """Return the AMI of an image in a region for a machine; None if there is none.

        Of several that fit, it is the one with the first value of the first capability.

        Args:
            machine: the capabilities of the machine.
            known: all values of all capabilities, in the order of preference; a machine or image
                without one has all of them.
        """
        offered = (
            version_
            for image in self.machine_images
            for version_ in image.versions
            if (image.name, version_.version) == (name, version)
        )
        fitting = [
            (capabilities, found.ami)
            for each in offered
            for capabilities, found in each.images()
            if found.name == region and _fit(capabilities, machine, known)
        ]
        for capability, values in known.items():
            for value in values:
                preferred = [each for each in fitting if value in each[0].get(capability, values)]
                fitting = preferred or fitting
        return fitting[0][1] if fitting else None


def effective_spec(cloud_profile: JsonObject) -> JsonObject:
    """Return the spec of a CloudProfile, or the one that results from a NamespacedCloudProfile."""
    return map_at(cloud_profile, "status", "cloudProfileSpec") or map_at(cloud_profile, "spec")


def known_capabilities(spec: JsonObject) -> Capabilities:
    """Return all values of the capabilities that a CloudProfile defines, in its order."""
    defined = {
        str(each.get("name")): [str(value) for value in each.get("values") or ()]
        for each in maps_at(spec, "machineCapabilities")
    }
    return defined if ARCHITECTURE in defined else {**defined, ARCHITECTURE: [AMD64]}


def machine_capabilities(machine: JsonObject, known: Capabilities) -> Capabilities:
    """Return the capabilities of a machine type; the architecture is a field in older profiles."""
    own = map_at(machine, "capabilities")
    given = {name: [str(value) for value in own.get(name) or ()] for name in known if own.get(name)}
    named = machine.get("architecture")
    architectures = [str(named)] if named else list(known[ARCHITECTURE])
    return {ARCHITECTURE: architectures, **given}


def _fit(image: Capabilities, machine: Capabilities, known: Capabilities) -> bool:
    """Return whether an image and a machine have a value of each capability in common."""
    return all(
        set(image.get(name, values)) & set(machine.get(name, values))
        for name, values in known.items()
    )
