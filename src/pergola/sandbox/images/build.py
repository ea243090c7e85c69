"""Making images of the catalogue, from programs that are given or built."""

import os
from collections.abc import Iterable, Mapping

from pergola.sandbox import binaries
from pergola.sandbox.images import oci
from pergola.sandbox.images.offer import Offer
from pergola.sandbox.images.store import Image, Store
from pergola.sandbox.progress import Progress, silent


def store(environ: Mapping[str, str] = os.environ) -> Store:
    """Return the user's store of images."""
    return Store(binaries.cache(environ) / "images")


def build(
    offers: Iterable[Offer], progress: Progress = silent, environ: Mapping[str, str] = os.environ
) -> dict[str, Image]:
    """Make images, by their full names; programs that are nowhere are built, which takes minutes.

    An image that is there already costs reading its program once, or looking at its files.

    Raises:
        SandboxError: a program cannot be had, or an image cannot be kept.
    """
    return {offer.reference: _build(offer, progress, environ) for offer in offers}


def built(offer: Offer, environ: Mapping[str, str] = os.environ) -> Image | None:
    """Return an image if it can be had at once, and None if it has to be built."""
    if offer.key():
        return store(environ).recall(offer.key())
    return _build(offer, silent, environ) if offer.is_built(environ) else None


def _build(offer: Offer, progress: Progress, environ: Mapping[str, str]) -> Image:
    kept, key = store(environ), offer.key()
    if not key:
        return oci.write(offer.recipe(progress, environ), kept)
    image = kept.recall(key)
    if image is None:
        image = oci.write(offer.recipe(progress, environ), kept)
        kept.remember(key, image)
    return image
