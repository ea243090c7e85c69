"""`CloudProfileConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1`, as far as it is used.

Only read leniently: the rest of it concerns workers.
"""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Final

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value
from pergola.providers.aws.config import GROUP

CLOUD_PROFILE_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "CloudProfileConfig")
AMD64: Final = "amd64"


class RegionImage(Value):
    """The image of a version in one region."""

    name: str
    """The region, such as `eu-west-1`."""
    ami: str
    """The id of the image in that region."""
    architecture: str = AMD64
    """The processor architecture of the image."""


class ImageVersion(Value):
    """A version of a machine image."""

    version: str
    """The version, such as `1592.3.0`."""
    regions: list[RegionImage] = []
    """The image in each region."""


class MachineImage(Value):
    """A machine image."""

    name: str
    """The name of the image in the CloudProfile."""
    versions: list[ImageVersion] = []
    """Its versions."""


class CloudProfileConfig(Value):
    """Machine images in AWS."""

    machine_images: list[MachineImage] = []
    """Operating systems."""

    def ami(self, name: str, version: str, region: str, architecture: str = AMD64) -> str | None:
        """Return the AMI of an image in a region; None if there is none."""
        for image in self.machine_images:
            for offered in image.versions:
                if (image.name, offered.version) != (name, version):
                    continue
                for found in offered.regions:
                    if (found.name, found.architecture) == (region, architecture):
                        return found.ami
        return None
