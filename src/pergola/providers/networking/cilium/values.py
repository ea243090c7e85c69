"""Compute values from a plan, once for all renderers (spec 40 §6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from pergola.api.ip_ranges import Network, overlap, parse_network
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.networking.cilium.api_server import ApiServer, api_server
from pergola.providers.networking.cilium.checks import has_node_local_dns, rewrites_sources
from pergola.providers.networking.cilium.config import NetworkConfig
from pergola.providers.networking.cilium.ipam import Ipam
from pergola.providers.networking.cilium.routing import Routing, routing
from pergola.providers.networking.plugin import Plan


@dataclass(frozen=True, slots=True)
class StrictEncryption:
    """Traffic that is dropped unless it is encrypted.

    Attributes:
        cidr: of the pods.
        allows_remote_nodes: whether identities of other nodes are looked up; needed where addresses
            do not tell pods and nodes apart.
    """

    cidr: str
    allows_remote_nodes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The input of the renderers.

    Attributes:
        native_ipv4: the range in which IPv4 packets keep their source address, or None.
        native_ipv6: the same for IPv6.
        api_server: None if kube-proxy routes the Service `kubernetes`.
        bpf_masquerade: whether eBPF rewrites source addresses; None leaves the setting out.
        operator_is_ha: whether the operator may have several replicas.
        pods: the ranges of pods, and likewise of `services` and `nodes`.
        ingress_domain: the domain of the Shoot's Ingresses; empty if unknown.
    """

    config: NetworkConfig
    ipv4: bool
    ipv6: bool
    routing: Routing
    native_ipv4: Network | None
    native_ipv6: Network | None
    api_server: ApiServer | None
    node_local_dns: bool
    bpf_masquerade: bool | None
    strict_encryption: StrictEncryption | None
    ipam: Ipam
    operator_is_ha: bool
    pods: tuple[Network, ...]
    services: tuple[Network, ...]
    nodes: tuple[Network, ...]
    ingress_domain: str

    @property
    def kube_proxy_replacement(self) -> bool:
        """Whether agents route Services instead of kube-proxy."""
        return self.api_server is not None

    @property
    def masquerades(self) -> tuple[bool, bool]:
        """Whether source addresses of IPv4 and of IPv6 are rewritten."""
        families = [name for name, used in (("IPv4", self.ipv4), ("IPv6", self.ipv6)) if used]
        return masquerades(self.config, families)

    @property
    def debug(self) -> bool:
        """Whether agents and operator log in detail."""
        return self.config.debug is True

    @property
    def hubble(self) -> bool:
        """Whether Hubble is on."""
        return self.config.hubble is not None and self.config.hubble.enabled


def values(plan: Plan[NetworkConfig], ipam: Ipam) -> Values:
    """Compute the values of a plan.

    Raises:
        ExtensionError: the Shoot lacks something, which the message names.
    """
    config, shoot = plan.config, plan.shoot
    way = routing(config, plan.families)
    pods = _networks("pods", [*shoot.pod_ranges, plan.pod_range])
    nodes = _networks("nodes", [shoot.node_range, *shoot.node_ranges])
    return Values(
        config=config,
        ipv4=plan.ipv4,
        ipv6=plan.ipv6,
        routing=way,
        native_ipv4=_native_ipv4(pods) if way.native_ipv4 else None,
        native_ipv6=_native_ipv6(shoot, pods) if way.native_ipv6 else None,
        api_server=None if shoot.kube_proxy_enabled else api_server(config, shoot),
        node_local_dns=has_node_local_dns(shoot),
        bpf_masquerade=_bpf_masquerade(config, plan.families),
        strict_encryption=_strict_encryption(config, way, pods, nodes),
        ipam=ipam,
        operator_is_ha=_least_workers(shoot) >= 2,
        pods=pods,
        services=_networks("services", [*shoot.service_ranges, plan.service_range]),
        nodes=nodes,
        ingress_domain=_ingress_domain(shoot),
    )


def network_of(networks: Sequence[Network], version: int) -> Network | None:
    """Return the first network of an IP version."""
    return next((network for network in networks if network.version == version), None)


def _native_ipv4(pods: Sequence[Network]) -> Network:
    network = network_of(pods, 4)
    if network is None:
        raise ExtensionError(
            "spec.networking.pods: the Shoot has no IPv4 range of pods, which native routing needs",
            Code.RETRYABLE_CONFIGURATION_PROBLEM,
        )
    return network


def _native_ipv6(shoot: Shoot, pods: Sequence[Network]) -> Network:
    """Prefer the status: infrastructures that assign IPv6 ranges report them only there."""
    reported = map_at(shoot.raw, "status", "networking").get("pods")
    known = [str(cidr) for cidr in reported] if isinstance(reported, list) else []
    network = network_of([*_networks("pods", known), *pods], 6)
    if network is None:
        raise ExtensionError(
            "status.networking.pods: the Shoot has no IPv6 range of pods, which native routing"
            " needs; its infrastructure has to report one",
            Code.RETRYABLE_CONFIGURATION_PROBLEM,
        )
    return network


def masquerades(config: NetworkConfig, families: Sequence[str]) -> tuple[bool, bool]:
    """Return whether source addresses of IPv4 and of IPv6 are rewritten."""
    ipv4 = "IPv4" in families and config.enable_ipv4_masquerade is not False
    return ipv4, "IPv6" in families and config.enable_ipv6_masquerade is True


def _bpf_masquerade(config: NetworkConfig, families: Sequence[str]) -> bool | None:
    """Return None without IPv4, or if sidecars rewrite addresses with iptables.

    Agents refuse to start with eBPF if no family is masqueraded.
    """
    if "IPv4" not in families or rewrites_sources(config):
        return None
    return config.enable_bpf_masquerade is not False and any(masquerades(config, families))


def _strict_encryption(
    config: NetworkConfig, way: Routing, pods: Sequence[Network], nodes: Sequence[Network]
) -> StrictEncryption | None:
    encryption = config.encryption
    if encryption is None or not (encryption.enabled and encryption.strict_mode):
        return None
    network = network_of(pods, 4)
    if network is None:
        return StrictEncryption("", not way.is_native)
    overlaps = any(overlap(network, node) for node in nodes)
    return StrictEncryption(str(network), not way.is_native or overlaps)


def _least_workers(shoot: Shoot) -> int:
    """Return the minimum number of nodes."""
    return sum(_minimum(worker) for worker in maps_at(shoot.raw, "spec", "provider", "workers"))


def _minimum(worker: JsonObject) -> int:
    minimum = worker.get("minimum")
    return minimum if isinstance(minimum, int) else 0


def _ingress_domain(shoot: Shoot) -> str:
    domain = map_at(shoot.raw, "spec", "dns").get("domain")
    return f"ingress.{domain}" if isinstance(domain, str) and domain else ""


def _networks(of: str, ranges: Sequence[str]) -> tuple[Network, ...]:
    """Parse the ranges of pods, services or nodes; each network once."""
    try:
        return tuple(dict.fromkeys(parse_network(cidr) for cidr in ranges if cidr))
    except ValueError as error:
        raise ExtensionError(
            f"the Shoot's networking.{of}, in spec or status: {error}; correct it in the Shoot or"
            " in the status of its Infrastructure",
            Code.CONFIGURATION_PROBLEM,
        ) from None
