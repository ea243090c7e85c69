"""Warnings about a config that works, but not as written (spec 40, Beyond 11)."""

from collections.abc import Iterator, Sequence

from pergola.extension_api.cluster import Shoot
from pergola.providers.networking.cilium.checks import rewrites_sources
from pergola.providers.networking.cilium.config import NetworkConfig
from pergola.providers.networking.cilium.routing import DISABLED, direct_routes, routing
from pergola.providers.networking.cilium.values import masquerades


def advice(config: NetworkConfig, families: Sequence[str], shoot: Shoot) -> Iterator[str]:
    """Yield a warning for each value that has no effect, with the reason."""
    yield from _about_overlay(config)
    yield from _about_families(config, families)
    yield from _about_native_routing(config, families)
    yield from _about_kube_proxy(config, shoot)
    if rewrites_sources(config) and config.enable_bpf_masquerade:
        yield (
            "enableBPFMasquerade: has no effect with snatToUpstreamDNS or snatOutOfCluster, which"
            " rewrite addresses with iptables"
        )
    elif config.enable_bpf_masquerade and not any(masquerades(config, families)):
        yield "enableBPFMasquerade: has no effect, because no addresses are masqueraded"
    encryption = config.encryption
    if encryption is not None and not encryption.enabled:
        for field, is_set in (
            ("mode", bool(encryption.mode)),
            ("nodeToNodeEnabled", encryption.node_to_node_enabled),
            ("strictMode", encryption.strict_mode),
        ):
            if is_set:
                yield f"encryption.{field}: has no effect, because encryption.enabled is false"


def _about_overlay(config: NetworkConfig) -> Iterator[str]:
    overlay = config.overlay
    if overlay is None:
        return
    tunnel = config.tunnel
    if overlay.enabled and tunnel == DISABLED:
        yield "tunnel: vxlan is used instead of disabled, because overlay.enabled is true"
    if not overlay.enabled and tunnel not in (None, DISABLED):
        yield f"tunnel: {tunnel} is not used, because overlay.enabled is false"
    if overlay.create_pod_routes and not direct_routes(config):
        yield "overlay.createPodRoutes: has no effect, because overlay.enabled is true"
    native = not overlay.enabled
    for field, value in (
        ("ipv4NativeRoutingCIDREnabled", config.ipv4_native_routing_cidr_enabled),
        ("ipv6NativeRoutingCIDREnabled", config.ipv6_native_routing_cidr_enabled),
    ):
        if value is not None and value is not native:
            yield f"{field}: is overruled by overlay.enabled"


def _about_families(config: NetworkConfig, families: Sequence[str]) -> Iterator[str]:
    for field, family, value in (
        ("ipv4", "IPv4", config.ipv4 and config.ipv4.enabled),
        ("ipv6", "IPv6", config.ipv6 and config.ipv6.enabled),
    ):
        if value is not None and value is not (family in families):
            yield f"{field}.enabled: is overruled by the IP families of the cluster"


def _about_native_routing(config: NetworkConfig, families: Sequence[str]) -> Iterator[str]:
    way = routing(config, families)
    masquerades = config.enable_ipv4_masquerade is not False
    if way.is_native and "IPv4" in families and masquerades and not way.native_ipv4:
        yield (
            "ipv4NativeRoutingCIDREnabled: agents that masquerade do not start without a tunnel"
            " unless they know the range of the pods; set it to true"
        )


def _about_kube_proxy(config: NetworkConfig, shoot: Shoot) -> Iterator[str]:
    proxy = config.kubeproxy
    if shoot.kube_proxy_enabled and config.load_balancing_mode not in (None, "snat"):
        yield "loadBalancingMode: has no effect on what kube-proxy routes"
    if proxy is None or not (proxy.k8s_service_host or proxy.k8s_service_port):
        return
    if shoot.kube_proxy_enabled:
        yield "kubeproxy: has no effect, because the cluster has kube-proxy"
    elif not (proxy.k8s_service_host and proxy.k8s_service_port):
        yield "kubeproxy: has no effect without both k8sServiceHost and k8sServicePort"
