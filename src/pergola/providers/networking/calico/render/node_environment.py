"""The environment of calico-node, by subject (spec 40 §5.5)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import env, flag, from_config_map, from_pod
from pergola.providers.networking.calico.render import config_map
from pergola.providers.networking.calico.values import Pool, Values

FELIX_METRICS: Final = 9091
KUBE_PROXY_HEALTHZ: Final = 10257  # 10256 belongs to kube-proxy itself
_MTUS: Final = ("FELIX_IPINIPMTU", "FELIX_VXLANMTU", "FELIX_WIREGUARDMTU")
_IPV6_MTUS: Final = ("FELIX_VXLANMTUV6", "FELIX_WIREGUARDMTUV6")


def node_environment(values: Values) -> list[JsonObject]:
    """Return all variables, always in the same order."""
    return [
        *api_server(values),
        *_process(values),
        *_ipv4(values.ipv4, vxlan_overlay=values.vxlan_overlay),
        *_ipv6(values.ipv6),
        *_encapsulation(values),
        *_felix(values),
        *_dataplane(values),
    ]


def api_server(values: Values) -> list[JsonObject]:
    """Return the address of the API server until Services are routed; none with kube-proxy."""
    if values.api_server is None:
        return []
    host, port = values.api_server
    return env(KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=str(port))


def node_address(values: Values) -> list[JsonObject]:
    """Return how a node finds its addresses, for sidecars that run calico-node's start-up."""
    return [
        *_address("IP", values.ipv4),
        *(_address("IP6", values.ipv6) if values.ipv6 else []),
    ]


def _address(name: str, pool: Pool | None) -> list[JsonObject]:
    if pool is None:
        return env(**{name: "none"})
    return env(**{name: "autodetect", f"{name}_AUTODETECTION_METHOD": pool.auto_detection})


def _process(values: Values) -> list[JsonObject]:
    return env(
        DATASTORE_TYPE="kubernetes",
        WAIT_FOR_DATASTORE="true",
        NODENAME=from_pod("spec.nodeName"),
        CLUSTER_TYPE="k8s,bgp",
        CALICO_NETWORKING_BACKEND=from_config_map(config_map.NAME, "calico_backend"),
        CALICO_DISABLE_FILE_LOGGING="true",
        CALICO_MANAGE_CNI="true",
        USE_POD_CIDR="true" if values.ipam.type == "host-local" else None,
        FELIX_TYPHAK8SSERVICENAME=from_config_map(config_map.NAME, "typha_service_name"),
    )


def _ipv4(pool: Pool | None, *, vxlan_overlay: bool) -> list[JsonObject]:
    if pool is None:
        return _address("IP", pool)
    without_ipip = vxlan_overlay or pool.encapsulation == "vxlan"
    return [
        *_address("IP", pool),
        *env(
            CALICO_IPV4POOL_CIDR=pool.cidr,
            CALICO_IPV4POOL_IPIP="Never" if without_ipip else pool.mode,
            CALICO_IPV4POOL_VXLAN=pool.mode if pool.encapsulation == "vxlan" else None,
        ),
    ]


def _ipv6(pool: Pool | None) -> list[JsonObject]:
    if pool is None:
        return [*_address("IP6", pool), *env(FELIX_IPV6SUPPORT="false")]
    return [
        *_address("IP6", pool),
        *env(
            CALICO_IPV6POOL_CIDR=pool.cidr,
            CALICO_IPV6POOL_NAT_OUTGOING=flag(pool.nat_outgoing),
            CALICO_IPV6POOL_VXLAN=pool.mode,
            CALICO_ROUTER_ID="hash",
            FELIX_IPV6SUPPORT="true",
        ),
    ]


def _encapsulation(values: Values) -> list[JsonObject]:
    """Return variables for Felix, which creates tunnels; the pools decide what uses them."""
    if values.vxlan_overlay:
        return env(FELIX_VXLANENABLED="true")
    return env(FELIX_IPINIPENABLED=flag(values.felix_ipip))


def _felix(values: Values) -> list[JsonObject]:
    mtu = from_config_map(config_map.NAME, "veth_mtu")
    encrypted = "true" if values.wireguard else None  # without it, a FelixConfiguration decides
    return env(
        **dict.fromkeys((*_MTUS, *(_IPV6_MTUS if values.ipv6 else ())), mtu),
        FELIX_HEALTHENABLED="true",
        FELIX_PROMETHEUSMETRICSENABLED="true",
        FELIX_PROMETHEUSMETRICSPORT=str(FELIX_METRICS),
        FELIX_DEFAULTENDPOINTTOHOSTACTION="ACCEPT",
        FELIX_NATPORTRANGE="32768:65535",
        FELIX_CHAININSERTMODE="Append" if values.snat_to_upstream_dns else None,
        FELIX_SERVICELOOPPREVENTION=values.service_loop_prevention,
        FELIX_WIREGUARDENABLED=encrypted if values.ipv4 else None,
        FELIX_WIREGUARDENABLEDV6=encrypted if values.ipv6 else None,
    )


def _dataplane(values: Values) -> list[JsonObject]:
    with_kube_proxy = values.ebpf and values.kube_proxy
    return env(
        FELIX_BPFENABLED=flag(values.ebpf),
        FELIX_BPFKUBEPROXYHEALTHZPORT=str(KUBE_PROXY_HEALTHZ) if with_kube_proxy else None,
        FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED=flag(not values.kube_proxy),
        FELIX_NFTABLESMODE="Enabled" if values.nftables else None,
    )
