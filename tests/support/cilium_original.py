"""The original extension's objects for cilium (1.19.7), for the comparison in `originals`."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium import NetworkConfig
from pergola.providers.networking.plugin import Plan
from tests.support.cilium_plans import cilium_config, cilium_plan, cilium_shoot
from tests.support.originals import OriginalTable

ORIGINAL: Final = OriginalTable("cilium_original.yaml")
VARIANTS: Final[Mapping[str, JsonObject]] = {
    "default": {},
    "without kube-proxy": {"overlay": {"enabled": True}, "hubble": {"enabled": True}},
    "native routing": {"overlay": {"enabled": False}, "snatToUpstreamDNS": {"enabled": True}},
}
"""The providerConfig of each variant."""

_PODS: Final = "100.244.0.0/16"


def original_plan(variant: str) -> Plan[NetworkConfig]:
    """Return the plan of a Network whose config is a variant."""
    shoot = cilium_shoot(
        kube_proxy=variant == "default",
        node_local_dns=variant == "native routing",
        external="https://api.net.example.org",
        ipv6=False,
    )
    shoot.raw["spec"]["networking"]["pods"] = _PODS
    shoot.raw["status"]["networking"]["pods"] = [_PODS]
    return cilium_plan(cilium_config(**VARIANTS[variant]), shoot, pod_range=_PODS)
