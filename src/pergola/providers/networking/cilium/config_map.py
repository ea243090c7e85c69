"""The ConfigMaps that agents and operator read when they start (spec 40 §6.6)."""

from datetime import timedelta
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium.checks import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from pergola.providers.networking.cilium.config import L2Announcements
from pergola.providers.networking.cilium.values import Values, network_of

NAME: Final = "cilium-config"
LABEL_PREFIXES_NAME: Final = "label-prefix-conf"
LABEL_PREFIXES_KEY: Final = "label-prefix.json"
LABEL_PREFIXES_MOUNT: Final = "/etc/cilium/label-prefix"
HUBBLE_TLS: Final = "/var/lib/cilium/tls/hubble"
AGENT_METRICS_PORT: Final = 9090
AGENT_HEALTH_PORT: Final = 9879
HUBBLE_METRICS_PORT: Final = 9091
HUBBLE_PORT: Final = 4244
OPERATOR_METRICS_PORT: Final = 6942
OPERATOR_HEALTH_PORT: Final = 9234
ENVOY_METRICS_PORT: Final = 9964
_KUBE_PROXY_HEALTH_PORT: Final = 10256
_HUBBLE_METRICS: Final = "dns drop tcp flow port-distribution icmp http"
_CNI_CONFIG: Final = "/host/etc/cni/net.d/05-cilium.conflist"

_ALWAYS: Final = {
    "identity-allocation-mode": "crd",
    "enable-policy": "default",
    "cilium-endpoint-gc-interval": "5m0s",
    "nodes-gc-interval": "5m0s",
    "identity-gc-interval": "15m0s",
    "identity-heartbeat-timeout": "30m0s",
    "cluster-name": "default",
    "cluster-id": "0",
    "custom-cni-conf": "false",
    "write-cni-conf-when-ready": _CNI_CONFIG,
    "procfs": "/host/proc",
    "bpf-root": "/sys/fs/bpf",
    "cgroup-root": "/run/cilium/cgroupv2",
    "tofqdns-proxy-response-max-delay": "100ms",
    "enable-l7-proxy": "true",
    "external-envoy-proxy": "true",
    "enable-endpoint-health-checking": "true",
    "enable-health-checking": "true",
    "enable-well-known-identities": "false",
    "set-cilium-node-taints": "true",
    "set-cilium-is-up-condition": "true",
    "remove-cilium-node-taints": "true",
    "unmanaged-pod-watcher-interval": "15",
    "node-port-bind-protection": "false",
    "enable-health-check-nodeport": "true",
    "enable-health-check-loadbalancer-ip": "true",
    "label-prefix-file": f"{LABEL_PREFIXES_MOUNT}/{LABEL_PREFIXES_KEY}",
    "prometheus-serve-addr": f":{AGENT_METRICS_PORT}",
    "agent-health-port": str(AGENT_HEALTH_PORT),
    "operator-prometheus-serve-addr": f":{OPERATOR_METRICS_PORT}",
    "enable-metrics": "true",
    "proxy-prometheus-port": str(ENVOY_METRICS_PORT),
}

# Labels that differ from pod to pod would give each pod an identity of its own. The longer prefix
# wins; what policies select by, as the namespace and Gardener's own labels, has to stay.
_KEPT_LABELS: Final = (
    r"io\.kubernetes\.pod\.namespace",
    r"io\.cilium\.k8s\.namespace\.labels",
    r"app\.kubernetes\.io",
)
_EXCLUDED_LABELS: Final = (
    r"io\.kubernetes",
    r"kubernetes\.io",
    r".*beta\.kubernetes\.io",
    r"k8s\.io",
    r"pod-template-generation",
    r"pod-template-hash",
    r"controller-revision-hash",
    r"controller-uid",
    r"batch\.kubernetes\.io",
    r"apps\.kubernetes\.io/pod-index",
    r"statefulset\.kubernetes\.io/pod-name",
    r"annotation.*",
    r"etcd_node",
)


def config(values: Values) -> dict[str, str]:
    """The keys of `cilium-config`, sorted."""
    keys = {
        **_ALWAYS,
        "debug": _flag(values.debug),
        "policy-audit-mode": _flag(values.config.policy_audit_mode is True),
        "enable-ipv4": _flag(values.ipv4),
        "enable-ipv6": _flag(values.ipv6),
        "operator-api-serve-addr": f"{_loopback(values)}:{OPERATOR_HEALTH_PORT}",
        **_routing(values),
        **_masquerading(values),
        **_services(values),
        **values.ipam.keys(_ranges(values)),
        **_devices(values),
        **_encryption(values),
        **_announcements(values),
        **_hubble(values),
        "cni-exclusive": _flag(values.config.cni is None or values.config.cni.exclusive),
        "enable-ipv4-egress-gateway": _flag(
            values.config.egress_gateway is not None and values.config.egress_gateway.enabled
        ),
    }
    return dict(sorted(keys.items()))


def label_prefixes() -> JsonObject:
    """Which labels make no identity.

    The ConfigMap is immutable, so this depends on nothing.
    """
    valid = [
        {"source": "reserved", "prefix": ".*"},
        *({"prefix": prefix} for prefix in _KEPT_LABELS),
        *({"prefix": prefix, "invert": True} for prefix in _EXCLUDED_LABELS),
    ]
    return {"version": 1, "valid-prefixes": valid}


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _loopback(values: Values) -> str:
    return "127.0.0.1" if values.ipv4 else "[::1]"


def _routing(values: Values) -> dict[str, str]:
    way = values.routing
    keys = {
        "routing-mode": "native" if way.is_native else "tunnel",
        "auto-direct-node-routes": _flag(way.direct_routes),
    }
    if not way.is_native:
        keys["tunnel-protocol"] = way.tunnel
    if values.native_ipv4 is not None:
        keys["ipv4-native-routing-cidr"] = str(values.native_ipv4)
    if values.native_ipv6 is not None:
        keys["ipv6-native-routing-cidr"] = str(values.native_ipv6)
    return keys


def _masquerading(values: Values) -> dict[str, str]:
    ipv4 = values.ipv4 and values.config.enable_ipv4_masquerade is not False
    ipv6 = values.ipv6 and values.config.enable_ipv6_masquerade is True
    keys = {"enable-ipv4-masquerade": _flag(ipv4), "enable-ipv6-masquerade": _flag(ipv6)}
    if values.bpf_masquerade is not None:
        keys["enable-bpf-masquerade"] = _flag(values.bpf_masquerade)
    return keys


def _services(values: Values) -> dict[str, str]:
    socket = values.config.bpf_socket_lb_hostns_only
    keys = {
        "bpf-lb-mode": values.config.load_balancing_mode or "snat",
        # Agents that masquerade by eBPF do not start without it, kube-proxy or not.
        "enable-node-port": _flag(values.kube_proxy_replacement or values.bpf_masquerade is True),
        "enable-local-redirect-policy": _flag(values.node_local_dns),
    }
    if values.kube_proxy_replacement:
        keys["kube-proxy-replacement"] = "true"
        anywhere = "0.0.0.0" if values.ipv4 else "[::]"  # noqa: S104 - load balancers ask from outside
        address = f"{anywhere}:{_KUBE_PROXY_HEALTH_PORT}"
        keys["kube-proxy-replacement-healthz-bind-address"] = address
    elif values.node_local_dns:
        # Redirecting to the node's own DNS needs it; the replacement of kube-proxy has it anyway.
        keys["bpf-lb-sock"] = "true"
    if socket is not None and socket.enabled:
        keys["bpf-lb-sock-hostns-only"] = "true"
    return keys


def _ranges(values: Values) -> dict[str, str]:
    families = {"ipv4": (values.ipv4, 4), "ipv6": (values.ipv6, 6)}
    return {
        family: str(network_of(values.pods, version) or "")
        for family, (is_used, version) in families.items()
        if is_used
    }


def _devices(values: Values) -> dict[str, str]:
    keys = {"mtu": str(values.config.mtu or 0)}
    if values.config.devices:
        keys["devices"] = " ".join(values.config.devices)
    if values.config.direct_routing_device:
        keys["direct-routing-device"] = values.config.direct_routing_device
    return keys


def _encryption(values: Values) -> dict[str, str]:
    encryption = values.config.encryption
    if encryption is None or not encryption.enabled:
        return {"enable-wireguard": "false"}
    keys = {
        "enable-wireguard": "true",
        "encrypt-node": _flag(encryption.node_to_node_enabled),
    }
    if values.strict_encryption is not None:
        strict = values.strict_encryption
        keys["enable-encryption-strict-mode"] = "true"
        keys["encryption-strict-mode-cidr"] = strict.cidr
        keys["encryption-strict-mode-allow-remote-node-identities"] = _flag(
            strict.allows_remote_nodes
        )
    return keys


def _announcements(values: Values) -> dict[str, str]:
    bgp, l2 = values.config.bgp_control_plane, values.config.l2_announcements
    keys = {
        "enable-bgp-control-plane": _flag(bgp is not None and bgp.enabled),
        "enable-l2-announcements": _flag(l2 is not None and l2.enabled),
    }
    return keys | _leases(l2) if l2 is not None and l2.enabled else keys


def _leases(l2: L2Announcements) -> dict[str, str]:
    spans: dict[str, timedelta] = {
        "l2-announcements-lease-duration": l2.lease_duration or LEASE_DURATION,
        "l2-announcements-renew-deadline": l2.lease_renew_deadline or RENEW_DEADLINE,
        "l2-announcements-retry-period": l2.lease_retry_period or RETRY_PERIOD,
    }
    return {key: format_duration(span) for key, span in spans.items()}


def _hubble(values: Values) -> dict[str, str]:
    keys = {
        "enable-hubble": _flag(values.hubble),
        "hubble-listen-address": f":{HUBBLE_PORT}",
        "hubble-metrics-server": f":{HUBBLE_METRICS_PORT}",
    }
    if values.hubble:
        keys |= {
            "hubble-socket-path": "/var/run/cilium/hubble.sock",
            "hubble-metrics": _HUBBLE_METRICS,
            "hubble-disable-tls": "false",
            "hubble-tls-cert-file": f"{HUBBLE_TLS}/server.crt",
            "hubble-tls-key-file": f"{HUBBLE_TLS}/server.key",
            "hubble-tls-client-ca-files": f"{HUBBLE_TLS}/client-ca.crt",
        }
    return keys
