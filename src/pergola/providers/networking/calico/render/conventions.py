"""Common parts of Calico's objects beyond the manifest kit: the original's conventions."""

from collections.abc import Sequence
from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.manifests.labels import TO_API_SERVER, TO_DNS, TO_PUBLIC_NETWORKS

CALICO: Final = "crd.projectcalico.org"
GARDENER: Final = {"origin": "gardener"}
EGRESS: Final = {**TO_PUBLIC_NETWORKS, **TO_API_SERVER, **TO_DNS}
"""Labels of pods that reach the API server by its public name."""

EVERYWHERE: Final[Sequence[JsonObject]] = (
    {"effect": "NoSchedule", "operator": "Exists"},
    {"effect": "NoExecute", "operator": "Exists"},
)
"""Tolerations for every taint: a node without a network is useless."""

ENDPOINT_OVERRIDE: Final[Sequence[JsonObject]] = (
    {"configMapRef": {"name": "kubernetes-services-endpoint", "optional": True}},
)
"""The ConfigMap with which users set the address of the API server for Calico."""


def preserved(auto_scaling: str) -> dict[str, str]:
    """Return the annotation that preserves the requests set by an autoscaler."""
    return {} if auto_scaling == "static" else {marks.PRESERVE_RESOURCES: "true"}
