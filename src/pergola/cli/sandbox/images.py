"""`pergola sandbox images`: the container images that a sandbox with a node can provide."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pergola.cli.output import ListOutput, print_table, show
from pergola.cli.sandbox.errors import plain_errors, report
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue

app = App(
    name="images",
    help="List the images that a sandbox with a node can provide, or build them.",
)


@app.default
def images(*, output: ListOutput = "table") -> None:
    """List all images with version, size, kind (real program or stand-in) and source.

    Shared layers are stored once, but counted in the size of each image. For a stand-in, the list
    says what it does instead of the original.
    """
    from pergola.sandbox.images import build
    from pergola.sandbox.images.catalogue import CATALOGUE

    with plain_errors():
        built = [(offer, build.built(offer)) for offer in CATALOGUE]
    data: list[JsonValue] = [
        {
            "name": offer.name,
            "version": offer.version,
            "bytes": image.size if image else None,
            "source": offer.source,
            "standIn": offer.stand_in or None,
        }
        for offer, image in built
    ]
    rows = [
        (
            offer.name,
            offer.version,
            f"{image.size / 1e6:.1f} MB" if image else "not built",
            "stand-in" if offer.stand_in else "real",
            f"{offer.source}; {offer.stand_in}" if offer.stand_in else offer.source,
        )
        for offer, image in built
    ]
    heads = ("NAME", "VERSION", "SIZE", "KIND", "SOURCE")
    show(
        output,
        data=data,
        names=[offer.name for offer, _ in built],
        text=lambda: print_table(heads, rows),
    )


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
