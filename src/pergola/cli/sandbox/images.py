"""`pergola sandbox images`: the container images that a sandbox with a node can provide."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import App, Parameter

from pergola.cli.sandbox.errors import plain_errors, say

app = App(
    name="images",
    help="List the images that a sandbox with a node can provide, or build them.",
)


@app.default
def show() -> None:
    """List all images: version, size, whether it is the real program, and its source.

    The size is that of the program, once it is built; what images share is kept once.
    """
    from pergola.sandbox import binaries
    from pergola.sandbox.images.catalogue import CATALOGUE

    with plain_errors():
        programs = binaries.present(tuple(offer.name for offer in CATALOGUE))
    print(f"{'NAME':<26}{'VERSION':<10}{'SIZE':>10}  {'KIND':<10}SOURCE")
    for offer in CATALOGUE:
        program = programs.get(offer.name)
        size = f"{program.stat().st_size / 1e6:.1f} MB" if program else "not built"
        kind = "stand-in" if offer.stand_in else "real"
        print(f"{offer.name:<26}{offer.version:<10}{size:>10}  {kind:<10}{offer.source}")


@app.command
def build(
    *names: Annotated[str, Parameter(help="Which images, as the list names them; none: all.")],
) -> None:
    """Build images into the cache, once, and print their full names.

    A program in the folder PERGOLA_SANDBOX_BIN takes the place of the one that would be built.
    """
    from pergola.sandbox.images import build
    from pergola.sandbox.images.catalogue import CATALOGUE, named

    with plain_errors():
        offers = named(names) if names else list(CATALOGUE)
        for reference, image in build.build(offers, say, os.environ).items():
            print(f"{reference}  {image.manifest.digest}  {image.size / 1e6:.1f} MB")
