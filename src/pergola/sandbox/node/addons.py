"""The add-ons of every node: DNS, a volume provisioner and metrics-server."""

from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.kube import yaml
from pergola.sandbox.images.catalogue import CATALOGUE

_MANIFESTS: Final = Path(__file__).parent / "manifests"
_IMAGE: Final = "image: "
# The Deployments that a start waits for; metrics-server is slow, because it has to measure first.
DEPLOYMENTS: Final = (
    Key("kube-system", "coredns"),
    Key("local-path-storage", "local-path-provisioner"),
)


def manifests(volumes: Path) -> list[JsonObject]:
    """Return the objects of the add-ons, in creation order.

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
