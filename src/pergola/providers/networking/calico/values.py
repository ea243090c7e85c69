"""The config of Calico with every default and rule applied; pure (spec 40 §5.3, §5.4, §5.6).

`overlay` takes precedence over the backend and the mode, and a user's auto-detection method over
the nodes' CIDRs (Beyond 10).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import map_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.networking.calico.checks import USE_POD_CIDR
from pergola.providers.networking.calico.config import NetworkConfig
from pergola.providers.networking.plugin import Plan

POD_CIDR: Final = {"IPv4": "usePodCidr", "IPv6": "usePodCidrIPv6"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGates:
    """Features that an operator can enable for all Shoots.

    Attributes:
        non_privileged_calico_node: run calico-node without privileges, except with eBPF.
        seamless_overlay_switch: remove an overlay only when every node has its routes.
    """

    non_privileged_calico_node: bool = False
    seamless_overlay_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The reachability of pods of one IP family.

    Attributes:
        cidr: of all pods.
        encapsulation: `ipip` or `vxlan`.
        mode: `Always`, `Never`, `CrossSubnet` or `Off`.
        auto_detection: how a node finds its address; None for the first one it finds.
        nat_outgoing: whether packets that leave the cluster get the node's address.
    """

    cidr: str
    encapsulation: str
    mode: str
    auto_detection: str | None
    nat_outgoing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipam:
    """The CNI plugin's assignment of addresses: from one subnet, or from ranges for dual-stack."""

    type: str
    subnet: str | None = None
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The input of rendering.

    Attributes:
        ipv4: None if IPv4 is not in use.
        ipv6: None if IPv6 is not in use.
        overlay: `overlay.enabled` of the config; None if unset.
        vxlan_overlay: whether the overlay is VXLAN.
        node_range: the IPv4 CIDR of nodes; None if it is not known.
        api_server: host and port of the API server for nodes without kube-proxy.
        auto_scaling: `cluster-proportional`, `vpa` or `static`, if the Shoot supports it.
        resources: amounts of `cpu` and `memory` by `node` and `typha`.
    """

    backend: str
    ipv4: Pool | None
    ipv6: Pool | None
    ipam: Ipam
    felix_ipip: bool
    overlay: bool | None
    vxlan_overlay: bool
    snat_to_upstream_dns: bool
    node_range: str | None
    kube_proxy: bool
    nftables: bool
    api_server: tuple[str, int] | None
    service_loop_prevention: str | None
    wireguard: bool
    ebpf: bool
    non_privileged: bool
    typha: bool
    veth_mtu: str
    bird_exporter: bool
    multus: bool
    multus_cni_plugins: bool
    auto_scaling: str
    resources: Mapping[str, Mapping[str, int | str]]
    vpa: bool

    @property
    def kube_controllers(self) -> bool:
        """Whether Calico's controllers run; backend `none` needs none of them."""
        return self.backend != "none"


def compute(plan: Plan[NetworkConfig], gates: FeatureGates | None = None) -> Values:
    """Return the values of a plan.

    Raises:
        ExtensionError: the pod range of an IP family in use is not known.
    """
    config, shoot = plan.config, plan.shoot
    gates = gates or FeatureGates()
    overlay = overlay_of(config)
    ebpf = config.ebpf_dataplane is not None and config.ebpf_dataplane.enabled
    return Values(
        backend=backend_of(plan),
        ipv4=_ipv4(plan) if plan.ipv4 else None,
        ipv6=_ipv6(plan) if plan.ipv6 else None,
        ipam=_ipam(plan),
        felix_ipip=plan.ipv4 and not _is_off(plan),
        overlay=overlay,
        vxlan_overlay=is_vxlan_overlay(config),
        snat_to_upstream_dns=overlay is False and _snat(config),
        node_range=_first("IPv4", [shoot.node_range, *shoot.node_ranges]),
        kube_proxy=shoot.kube_proxy_enabled,
        nftables=shoot.kube_proxy_enabled and shoot.kube_proxy_mode == "NFTables",
        api_server=_api_server(shoot) if not shoot.kube_proxy_enabled else None,
        service_loop_prevention=config.service_loop_prevention,
        wireguard=bool(config.wireguard_encryption),
        ebpf=ebpf,
        non_privileged=gates.non_privileged_calico_node and not ebpf,
        typha=config.typha is None or config.typha.enabled,
        veth_mtu=str(int(config.veth_mtu or "0")),
        bird_exporter=bool(config.bird_exporter and config.bird_exporter.enabled),
        multus=bool(config.multus and config.multus.enabled),
        multus_cni_plugins=bool(config.multus and config.multus.install_cni_plugins),
        auto_scaling=auto_scaling_of(config, shoot),
        resources=_resources(config),
        vpa=vpa_enabled(shoot),
    )


def overlay_of(config: NetworkConfig) -> bool | None:
    """Return whether the config has an overlay; None if the backend and the mode decide."""
    return config.overlay.enabled if config.overlay else None


def has_vxlan(config: NetworkConfig) -> bool:
    """Return whether the IPv4 pool is one of VXLAN, whose addresses Calico assigns."""
    return config.vxlan is not None and config.vxlan.enabled


def is_vxlan_overlay(config: NetworkConfig) -> bool:
    """Return whether the overlay is VXLAN."""
    return overlay_of(config) is True and has_vxlan(config)


def overlay_mode(plan: Plan[NetworkConfig]) -> str | None:
    """Return the mode that the overlay dictates, or None (§5.3 step 6)."""
    overlay = overlay_of(plan.config)
    if overlay is None:
        return "Never" if plan.ipv6 else None
    return "Always" if overlay else "Never"


def backend_of(plan: Plan[NetworkConfig]) -> str:
    """Return the routing between nodes."""
    config, mode = plan.config, overlay_mode(plan)
    if mode == "Always":
        return "vxlan" if is_vxlan_overlay(config) else "bird"
    if mode == "Never":
        return "bird" if _creates_pod_routes(config) else "none"
    return config.backend or "bird"


def ipv4_mode(plan: Plan[NetworkConfig]) -> str:
    """Return the mode that says which IPv4 packets are encapsulated."""
    mode = overlay_mode(plan)
    if mode is not None and not plan.ipv6:
        return mode
    if overlay_of(plan.config) is False:  # in dual-stack, never use an overlay for only one family
        return "Never"
    is_off = _is_off(plan) and not has_vxlan(plan.config)
    return chosen_ipv4_mode(plan.config) or ("Never" if is_off else "Always")


def ipv6_mode(plan: Plan[NetworkConfig]) -> str:
    """Return the mode that says which IPv6 packets are encapsulated; the overlay always decides."""
    return overlay_mode(plan) or "Never"


def chosen_ipv4_mode(config: NetworkConfig) -> str | None:
    """Return the mode set by the user."""
    return config.ipv4.mode if config.ipv4 else None


def auto_scaling_of(config: NetworkConfig, shoot: Shoot) -> str:
    """Return the mode of scaling; `vpa` needs a vertical pod autoscaler in the Shoot."""
    mode = (config.auto_scaling and config.auto_scaling.mode) or "cluster-proportional"
    return "cluster-proportional" if mode == "vpa" and not vpa_enabled(shoot) else mode


def vpa_enabled(shoot: Shoot) -> bool:
    """Return whether the Shoot has a vertical pod autoscaler."""
    autoscaler = map_at(shoot.raw, "spec", "kubernetes", "verticalPodAutoscaler")
    return autoscaler.get("enabled") is True


def _creates_pod_routes(config: NetworkConfig) -> bool:
    overlay = config.overlay
    return bool(overlay and not overlay.enabled and overlay.create_pod_routes)


def _is_off(plan: Plan[NetworkConfig]) -> bool:
    return backend_of(plan) == "none" or overlay_of(plan.config) is False


def _snat(config: NetworkConfig) -> bool:
    snat = config.snat_to_upstream_dns
    return snat is None or snat.enabled


def _ipv4(plan: Plan[NetworkConfig]) -> Pool:
    config = plan.config
    own = config.ipv4
    method = own.auto_detection_method if own else None
    default = "vxlan" if has_vxlan(config) else "ipip"
    return Pool(
        cidr=_pod_range(plan, "IPv4", [plan.pod_range, *plan.shoot.pod_ranges]),
        encapsulation=(own and own.pool) or default,
        mode=ipv4_mode(plan),
        auto_detection=method or _by_node_ranges(plan.shoot, "IPv4"),
        nat_outgoing=True,
    )


def _ipv6(plan: Plan[NetworkConfig]) -> Pool:
    own = plan.config.ipv6
    source_nat = own.source_nat_enabled if own else None
    in_status = map_at(plan.shoot.raw, "status", "networking").get("pods")
    known = in_status if isinstance(in_status, list) else []
    return Pool(
        cidr=_pod_range(plan, "IPv6", [*known, *plan.shoot.pod_ranges, plan.pod_range]),
        encapsulation="vxlan",
        mode=ipv6_mode(plan),
        auto_detection=(own and own.auto_detection_method) or _by_node_ranges(plan.shoot, "IPv6"),
        nat_outgoing=bool(plan.config.wireguard_encryption) if source_nat is None else source_nat,
    )


def _pod_range(plan: Plan[NetworkConfig], family: str, candidates: Iterable[object]) -> str:
    cidr = _first(family, candidates)
    if cidr is None:
        raise ExtensionError(
            f"no {family} range of pods is known: neither spec.podCIDR nor status.networking.pods "
            f"of the Shoot of {plan.namespace} has one; wait until its infrastructure reports it",
            Code.RETRYABLE_DEPENDENCIES,
        )
    return cidr


def _ipam(plan: Plan[NetworkConfig]) -> Ipam:
    own = plan.config.ipam
    if plan.ipv4 and has_vxlan(plan.config):
        return Ipam(type="calico-ipam")
    if own and own.type == "calico-ipam":
        return Ipam(type="calico-ipam")
    if plan.ipv4 and plan.ipv6:
        return Ipam(type="host-local", ranges=(POD_CIDR["IPv6"], POD_CIDR["IPv4"]))
    if own and own.cidr and own.cidr.lower() != USE_POD_CIDR:
        return Ipam(type="host-local", subnet=own.cidr)
    return Ipam(type="host-local", subnet=POD_CIDR["IPv6" if plan.ipv6 else "IPv4"])


def _by_node_ranges(shoot: Shoot, family: str) -> str | None:
    """Return a detection method from the node ranges of a family.

    Use the ranges in the status, which has all families, or else the single range in the spec.
    """
    known = shoot.node_ranges or [shoot.node_range]
    ranges = [cidr for cidr in known if _family(cidr) == family]
    return f"cidr={','.join(ranges)}" if ranges else None


def _first(family: str, candidates: Iterable[object]) -> str | None:
    for cidr in candidates:
        if isinstance(cidr, str) and _family(cidr) == family:
            return cidr
    return None


def _family(cidr: str) -> str | None:
    try:
        return f"IPv{parse_network(cidr).version}"
    except ValueError:
        return None


def _api_server(shoot: Shoot) -> tuple[str, int] | None:
    url = urlsplit(shoot.advertised_address("external") or "")
    return (url.hostname, url.port or 443) if url.hostname else None


def _resources(config: NetworkConfig) -> Mapping[str, Mapping[str, int | str]]:
    resources = config.auto_scaling.resources if config.auto_scaling else None
    if resources is None:
        return {}
    return {"node": resources.node or {}, "typha": resources.typha or {}}
