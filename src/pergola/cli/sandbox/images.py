"""`pergola sandbox images`: the container images that a sandbox with a node can provide."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import App, Parameter

from pergola.cli.sandbox.errors import plain_errors, report
from pergola.cli.text import say

app = App(
    name="images",
    help="List the images that a sandbox with a node can provide, or build them.",
)


@app.default
def show() -> None:
    """List all images with version, size, kind (real program or stand-in) and source.

    Shared layers are stored once, but counted in the size of each image. For a stand-in, the list
    says what it does instead of the original.
    """
    from pergola.sandbox.images import build
    from pergola.sandbox.images.catalogue import CATALOGUE

    say(f"{'NAME':<31}{'VERSION':<10}{'SIZE':>10}  {'KIND':<10}SOURCE")
    with plain_errors():
        for offer in CATALOGUE:
            image = build.built(offer)
            size = f"{image.size / 1e6:.1f} MB" if image else "not built"
            kind = "stand-in" if offer.stand_in else "real"
            source = f"{offer.source}; {offer.stand_in}" if offer.stand_in else offer.source
            say(f"{offer.name:<31}{offer.version:<10}{size:>10}  {kind:<10}{source}")


@app.command
def build(
    *names: Annotated[str, Parameter(help="Names of images from the list; default: all.")],
    garden: Annotated[
        bool, Parameter(negative="", help="Build those of a Garden, and the ones named.")
    ] = False,
) -> None:
    """Build images into the cache, once, and print their full names.

    A program in the folder PERGOLA_SANDBOX_BIN replaces the built one.
    """
    from pergola.sandbox.images import build
    from pergola.sandbox.images.catalogue import CATALOGUE, GARDEN_IMAGES, named

    with plain_errors():
        requested = [*names, *(GARDEN_IMAGES if garden else ())]
        offers = named(requested) if requested else list(CATALOGUE)
        for reference, image in build.build(offers, report, os.environ).items():
            say(f"{reference}  {image.manifest.digest}  {image.size / 1e6:.1f} MB")
