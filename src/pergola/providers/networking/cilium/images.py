"""The images of cilium: those of the package, unless an operator overrides them."""

from functools import partial
from importlib.resources import files

from pergola.bundle.image_vector import ImageVector
from pergola.manifests import Images


def image_vector() -> ImageVector:
    """Return the images of the package with their overrides.

    Raises:
        ImageVectorError: the override is not a valid image vector.
    """
    return ImageVector.from_environment(files(__package__) / "images.yaml")


def images_for(vector: ImageVector, kubernetes_version: str) -> Images:
    """Return the images for a version of Kubernetes."""
    return partial(vector.find, version=kubernetes_version)
