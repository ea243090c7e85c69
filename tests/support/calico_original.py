"""The original extension's objects for calico (3.31.6), for the comparison in `originals`."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.calico import Calico, NetworkConfig
from pergola.providers.networking.plugin import Plan
from tests.support.originals import OriginalTable

ORIGINAL: Final = OriginalTable("calico_original.yaml")
VARIANTS: Final[Mapping[str, JsonObject]] = {
    "default": {},
    "overlay off": {"overlay": {"enabled": False}},
    "ebpf": {
        "ebpfDataplane": {"enabled": True},
        "birdExporter": {"enabled": True},
        "multus": {"enabled": True},
    },
}
"""The providerConfig of each variant; `ebpf` runs without kube-proxy."""


def calico_plan(variant: str, namespace: str = "shoot--project--name") -> Plan[NetworkConfig]:
    """Return the plan of a Network whose config is a variant."""
    kubernetes = {"version": "1.31.1", "kubeProxy": {"enabled": variant != "ebpf"}}
    networking = {"pods": "100.244.0.0/16", "nodes": "10.250.0.0/16"}
    status = {
        "networking": {"pods": ["100.244.0.0/16"]},
        "advertisedAddresses": [{"name": "external", "url": "https://api.example.org"}],
    }
    shoot = {"spec": {"networking": networking, "kubernetes": kubernetes}, "status": status}
    return Plan(
        config=read_strict(NetworkConfig, VARIANTS[variant], Calico.config_gvk()),
        pod_range="100.244.0.0/16",
        service_range="100.32.0.0/13",
        families=("IPv4",),
        shoot=Shoot(shoot),
        namespace=namespace,
    )
