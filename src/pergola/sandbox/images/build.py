"""Builds of catalogue images from user-provided or built programs."""

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
    """Build images, and return them by full name; building missing programs takes minutes.

    For an image that exists already, only its program is read, or its files are inspected.

    Raises:
        SandboxError: a program cannot be built, or an image cannot be stored.
    """
    return {offer.reference: _build(offer, progress, environ) for offer in offers}


def built(offer: Offer, environ: Mapping[str, str] = os.environ) -> Image | None:
    """Return an image, or None if a program must be built first."""
    key = offer.key(environ)
    if key:
        return store(environ).recall(key)
    return _build(offer, silent, environ) if offer.is_built(environ) else None


def _build(offer: Offer, progress: Progress, environ: Mapping[str, str]) -> Image:
    kept, key = store(environ), offer.key(environ)
    if not key:
        return oci.write(offer.recipe(progress, environ), kept)
    image = kept.recall(key)
    if image is None:
        image = oci.write(offer.recipe(progress, environ), kept)
        kept.remember(key, image)
    return image
