"""Making images of the catalogue, from programs that are given or built."""

import os
from collections.abc import Iterable, Mapping

from pergola.sandbox import binaries
from pergola.sandbox.images import oci
from pergola.sandbox.images.catalogue import Offer
from pergola.sandbox.images.oci import Image
from pergola.sandbox.images.store import Store
from pergola.sandbox.progress import Progress, silent


def store(environ: Mapping[str, str] = os.environ) -> Store:
    """Return the user's store of images."""
    return Store(binaries.cache(environ) / "images")


def build(
    offers: Iterable[Offer], progress: Progress = silent, environ: Mapping[str, str] = os.environ
) -> dict[str, Image]:
    """Make images, by their full names; programs that are nowhere are built, which takes minutes.

    An image that is there already costs reading its program once.

    Raises:
        SandboxError: a program cannot be had, or an image cannot be kept.
    """
    wanted = list(offers)
    programs = binaries.find(tuple(offer.name for offer in wanted), progress, environ)
    kept = store(environ)
    return {
        offer.reference: oci.write(offer.recipe(programs[offer.name]), kept) for offer in wanted
    }
