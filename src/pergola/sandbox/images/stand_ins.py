"""Images of programs that a sandbox lacks: one small program answers their pods' probes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.images.layers import Entry, program
from pergola.sandbox.images.oci import NONROOT, Recipe
from pergola.sandbox.images.offer import BASE, Offer
from pergola.sandbox.module import OWN, PROBE_ANSWERS
from pergola.sandbox.progress import Progress

_ANSWERS: Final = "only answers the probes of its pod"
_EXITS: Final = "exits successfully at once, as an init container"
_GARDENER: Final = "europe-docker.pkg.dev/gardener-project/releases/gardener"
_THIRD: Final = "europe-docker.pkg.dev/gardener-project/releases/3rd"


@dataclass(frozen=True)
class StandIn(Offer):
    """An image that answers probes in place of its program, unless the user provides the program.

    Attributes:
        name: the name of the image, and of the program in `PERGOLA_SANDBOX_BIN` that replaces it.
        ports: the ports to listen on, in addition to those in the container's arguments.
        also: the paths that manifests use as commands, without leading slashes.
        exits: whether it is an init container's image.
    """

    name: str
    repository: str
    ports: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    exits: bool = False
    aliases: tuple[str, ...] = ()
    version = "v1"
    source = f"Pergola: sandbox/gomod/{OWN.directory.name}/{PROBE_ANSWERS}"

    @property
    def stand_in(self) -> str:  # type: ignore[override]
        """The behaviour of the substitute."""
        return _EXITS if self.exits else _ANSWERS

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether the program exists already."""
        given = binaries.given(self.name, environ)
        return given is not None or PROBE_ANSWERS in binaries.present((PROBE_ANSWERS,), environ)

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return an empty key: reading one program is fast."""
        return ""

    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return a recipe with the program at all paths that manifests use."""
        built = binaries.given(self.name, environ)
        variables = {}
        if built is None:
            built = binaries.find((PROBE_ANSWERS,), progress, environ)[PROBE_ANSWERS]
            variables = {"PERGOLA_PORTS": ",".join(map(str, self.ports))}
            variables |= {"PERGOLA_EXITS": "true"} if self.exits else {}
        path = f"usr/local/bin/{self.name}"
        layer = [program(path, built), *(Entry(other, target=f"/{path}") for other in self.also)]
        return Recipe([BASE, layer], [f"/{path}"], NONROOT, variables, self.labels())


STAND_INS: Final[tuple[Offer, ...]] = (
    StandIn("gardener-dashboard", f"{_GARDENER}/dashboard", (8080, 9050)),
    StandIn(
        "gardener-discovery-server", f"{_GARDENER}/gardener-discovery-server", (8080, 8081, 10443)
    ),
    StandIn(
        "gardener-metrics-exporter",
        f"{_GARDENER}/metrics-exporter",
        (2718,),
        also=("gardener-metrics-exporter",),
    ),
    StandIn("ext-authz-server", f"{_GARDENER}/ext-authz-server", (10000,)),
    StandIn("plutono", f"{_THIRD}/credativ/plutono", (3000,)),
    StandIn("plutono-sidecar", "quay.io/kiwigrid/k8s-sidecar", also=("usr/local/bin/python",)),
    StandIn("vali", f"{_THIRD}/credativ/vali", (3100,)),
    StandIn("vali-curator", f"{_GARDENER}/vali-curator", (2718,)),
    StandIn("tune2fs", f"{_GARDENER}/tune2fs", also=("usr/local/bin/bash",), exits=True),
    StandIn("fluent-operator", f"{_THIRD}/fluent-operator/fluent-operator"),
    StandIn(
        "fluent-bit",
        f"{_THIRD}/fluent-operator/fluent-bit",
        (2020, 2021),
        also=("fluent-bit/bin/fluent-bit-watcher",),
    ),
    StandIn(
        "fluent-bit-plugin",
        f"{_GARDENER}/fluent-bit-plugin",
        also=("usr/local/bin/cp",),
        exits=True,
    ),
    StandIn("opentelemetry-collector", f"{_GARDENER}/observability/opentelemetry-collector"),
    StandIn("perses-operator", f"{_THIRD}/persesdev/perses-operator", (8081, 8082)),
    StandIn("victoria-operator", f"{_THIRD}/victoriametrics/operator", (8080, 8081)),
    StandIn("cortex", "quay.io/cortexproject/cortex", (9091,)),
    StandIn("busybox", "docker.io/library/busybox"),
)
