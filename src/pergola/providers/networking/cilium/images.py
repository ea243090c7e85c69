"""Which images cilium runs: those of the package, unless the operator overrides them."""

from functools import partial
from importlib.resources import files

from pergola.bundle.image_vector import ImageVector
from pergola.manifests import Images


def image_vector() -> ImageVector:
    """The images of the package and their override.

    Raises:
        ImageVectorError: the override is no image vector.
    """
    return ImageVector.from_environment(files(__package__) / "images.yaml")


def images_for(vector: ImageVector, kubernetes_version: str) -> Images:
    """The images for a cluster of a version of Kubernetes."""
    return partial(vector.find, version=kubernetes_version)
