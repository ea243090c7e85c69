"""`CloudProfileConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 31 §3).

Missing texts are empty, as the original reads them: admission says what must be set.
"""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at
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


def effective_spec(cloud_profile: JsonObject) -> JsonObject:
    """Return the spec of a CloudProfile, or the one that results from a NamespacedCloudProfile."""
    return map_at(cloud_profile, "status", "cloudProfileSpec") or map_at(cloud_profile, "spec")
