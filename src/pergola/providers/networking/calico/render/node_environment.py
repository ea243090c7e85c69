"""The environment of calico-node (spec 40 §5.5), by what each part of it decides."""

from typing import Final

from pergola.api.objects import JsonValue
from pergola.providers.networking.calico.render import config_map
from pergola.providers.networking.calico.render.compose import config_key, env, field_path, flag
from pergola.providers.networking.calico.values import Pool, Values

FELIX_METRICS: Final = 9091
KUBE_PROXY_HEALTHZ: Final = 10257  # 10256 belongs to kube-proxy itself
_MTU_VARIABLES: Final = (
    "FELIX_IPINIPMTU",
    "FELIX_VXLANMTU",
    "FELIX_VXLANMTUV6",
    "FELIX_WIREGUARDMTU",
    "FELIX_WIREGUARDMTUV6",
)


def node_environment(values: Values) -> list[JsonValue]:
    """All variables, always in the same order."""
    return [
        *api_server(values),
        *_process(values),
        *_ipv4(values.ipv4),
        *_ipv6(values.ipv6),
        *_encapsulation(values),
        *_felix(values),
        *_dataplane(values),
    ]


def api_server(values: Values) -> list[JsonValue]:
    """Where the API server is while nothing routes Services yet; empty if kube-proxy does."""
    if values.api_server is None:
        return []
    host, port = values.api_server
    return env(KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=str(port))


def _process(values: Values) -> list[JsonValue]:
    bird = values.backend == "bird"
    return env(
        DATASTORE_TYPE="kubernetes",
        WAIT_FOR_DATASTORE="true",
        NODENAME=field_path("spec.nodeName"),
        CLUSTER_TYPE="k8s,bgp" if bird else "k8s",
        CALICO_NETWORKING_BACKEND=config_key(config_map.NAME, "calico_backend"),
        CALICO_DISABLE_FILE_LOGGING="true",
        CALICO_MANAGE_CNI="true",
        USE_POD_CIDR="true" if values.ipam.type == "host-local" else None,
        FELIX_TYPHAK8SSERVICENAME=config_key(config_map.NAME, "typha_service_name"),
    )


def _ipv4(pool: Pool | None) -> list[JsonValue]:
    if pool is None:
        return env(IP="none")
    return env(
        IP="autodetect",
        IP_AUTODETECTION_METHOD=pool.auto_detection,
        CALICO_IPV4POOL_CIDR=pool.cidr,
        CALICO_IPV4POOL_NAT_OUTGOING=flag(pool.nat_outgoing),
        CALICO_IPV4POOL_IPIP="Never" if pool.encapsulation == "vxlan" else pool.mode,
        CALICO_IPV4POOL_VXLAN=pool.mode if pool.encapsulation == "vxlan" else None,
    )


def _ipv6(pool: Pool | None) -> list[JsonValue]:
    if pool is None:
        return env(IP6="none", FELIX_IPV6SUPPORT="false")
    return env(
        IP6="autodetect",
        IP6_AUTODETECTION_METHOD=pool.auto_detection,
        CALICO_IPV6POOL_CIDR=pool.cidr,
        CALICO_IPV6POOL_NAT_OUTGOING=flag(pool.nat_outgoing),
        CALICO_IPV6POOL_VXLAN=pool.mode,
        CALICO_ROUTER_ID="hash",
        FELIX_IPV6SUPPORT="true",
    )


def _encapsulation(values: Values) -> list[JsonValue]:
    """Which tunnels Felix makes; the pools decide who uses them."""
    if values.ipv4 is not None and values.ipv4.encapsulation == "vxlan":
        return env(FELIX_VXLANENABLED=flag(values.ipv4.mode != "Never"))
    return env(FELIX_IPINIPENABLED=flag(values.felix_ipip))


def _felix(values: Values) -> list[JsonValue]:
    mtu = config_key(config_map.NAME, "veth_mtu")
    return env(
        **dict.fromkeys(_MTU_VARIABLES, mtu),
        FELIX_LOGSEVERITYSCREEN="error",
        FELIX_HEALTHENABLED="true",
        FELIX_PROMETHEUSMETRICSENABLED="true",
        FELIX_PROMETHEUSMETRICSPORT=str(FELIX_METRICS),
        FELIX_DEFAULTENDPOINTTOHOSTACTION="ACCEPT",
        FELIX_NATPORTRANGE="32768:65535",
        FELIX_CHAININSERTMODE="Append" if values.snat_to_upstream_dns else None,
        FELIX_SERVICELOOPPREVENTION=values.service_loop_prevention,
        FELIX_WIREGUARDENABLED=flag(values.wireguard and values.ipv4 is not None),
        FELIX_WIREGUARDENABLEDV6=flag(values.wireguard and values.ipv6 is not None),
    )


def _dataplane(values: Values) -> list[JsonValue]:
    with_kube_proxy = values.ebpf and values.kube_proxy
    return env(
        FELIX_BPFENABLED=flag(values.ebpf),
        FELIX_BPFKUBEPROXYHEALTHZPORT=str(KUBE_PROXY_HEALTHZ) if with_kube_proxy else None,
        FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED=flag(not values.kube_proxy),
        FELIX_NFTABLESMODE="Enabled" if values.nftables else None,
    )
