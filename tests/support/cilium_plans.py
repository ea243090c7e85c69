"""Plans for Networks of type cilium, as tests need them."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.cilium import NETWORK_CONFIG, NetworkConfig
from pergola.providers.networking.plugin import Plan

PODS: Final = "100.96.0.0/11"
PODS_IPV6: Final = "2001:db8:1::/56"
SERVICES: Final = "100.64.0.0/13"
NODES: Final = "10.250.0.0/16"
HOST: Final = "api.demo.example.org"


def cilium_shoot(
    *,
    kube_proxy: bool = True,
    mode: str | None = None,
    node_local_dns: bool = False,
    least_workers: int = 2,
    external: str | None = f"https://{HOST}",
    ipv6: bool = True,
) -> Shoot:
    """Return a Shoot with everything that cilium may ask for."""
    proxy: JsonObject = {"enabled": kube_proxy, **({"mode": mode} if mode else {})}
    addresses = [{"name": "internal", "url": "https://api.internal.example.org"}]
    if external is not None:
        addresses.append({"name": "external", "url": external})
    return Shoot(
        {
            "spec": {
                "dns": {"domain": "demo.example.org"},
                "kubernetes": {"version": "1.33.2", "kubeProxy": proxy},
                "networking": {"pods": PODS, "services": SERVICES, "nodes": NODES},
                "provider": {"workers": [{"name": "pool", "minimum": least_workers}]},
                "systemComponents": {"nodeLocalDNS": {"enabled": node_local_dns}},
            },
            "status": {
                "advertisedAddresses": addresses,
                "networking": {"pods": [PODS, *([PODS_IPV6] if ipv6 else [])]},
            },
        }
    )


def cilium_config(**fields: object) -> NetworkConfig:
    """Return a config from fields of `providerConfig`, parsed as strictly as in a Network."""
    return read_strict(NetworkConfig, dict(fields), NETWORK_CONFIG)  # type: ignore[arg-type]


def cilium_plan(
    config: NetworkConfig | None = None,
    shoot: Shoot | None = None,
    *,
    families: Sequence[str] = ("IPv4",),
    state: JsonObject | None = None,
    pod_range: str | None = None,
) -> Plan[NetworkConfig]:
    """Return the plan of a Network of that Shoot."""
    return Plan(
        config=config or NetworkConfig(),
        pod_range=pod_range or (PODS if families[0] == "IPv4" else PODS_IPV6),
        service_range=SERVICES,
        families=tuple(families),
        shoot=shoot or cilium_shoot(),
        namespace="shoot--test--demo",
        state=state or {},
    )
