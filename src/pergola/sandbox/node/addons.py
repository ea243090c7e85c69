"""What runs on every node: DNS, a provisioner of volumes, and metrics-server."""

from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.kube import yaml
from pergola.sandbox.images.catalogue import CATALOGUE

_MANIFESTS: Final = Path(__file__).parent / "manifests"
_IMAGE: Final = "image: "
# What a start waits for; metrics-server is not among them, because it takes its time to measure.
DEPLOYMENTS: Final = (
    Key("kube-system", "coredns"),
    Key("local-path-storage", "local-path-provisioner"),
)


def manifests(volumes: Path) -> list[JsonObject]:
    """Return the objects, in the order in which they can be created.

    Args:
        volumes: the folder for the volumes of pods.
    """
    objects = []
    for file in sorted(_MANIFESTS.glob("*.yaml")):
        text = file.read_text().replace("$VOLUMES", str(volumes))
        for offer in CATALOGUE:
            text = text.replace(f"{_IMAGE}{offer.name}\n", f"{_IMAGE}{offer.reference}\n")
        objects += [d.value for d in yaml.parse_documents(text) if isinstance(d.value, dict)]
    return objects
