"""The images of other projects that Pergola's products run, for a registry with copies."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from pergola.bundle.image_vector import ImageVector

_VECTORS: Final = {
    "operator": "pergola.garden.components",
    "networking-calico": "pergola.providers.networking.calico",
    "networking-cilium": "pergola.providers.networking.cilium",
}
_GARDENER: Final = "gardener-project/releases/"


def image_list() -> str:
    """Return a line for each image: the product that runs it, and its reference."""
    lines = {f"{product} {reference}\n" for product, reference in _references()}
    return "".join(sorted(lines))


def _references() -> Iterator[tuple[str, str]]:
    for product, package in _VECTORS.items():
        vector = ImageVector.load((files(package) / "images.yaml").read_bytes())
        for source in vector.sources:
            if ref := source.text("ref"):
                yield product, ref
                continue
            repository, tag = source.text("repository"), source.text("tag")
            of = "Gardener" if _GARDENER in repository else "Kubernetes"
            yield product, f"{repository}:{tag or f'v<version of {of}>'}"
