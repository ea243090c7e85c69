"""The ConfigMap `cilium-config`, which agents and operator read at start-up (spec 40 §6.6)."""

from datetime import timedelta
from typing import Final

from pergola.api.durations import format_duration
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.checks import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from pergola.providers.networking.cilium.config import L2Announcements
from pergola.providers.networking.cilium.config_constants import CONSTANTS
from pergola.providers.networking.cilium.values import StrictEncryption, Values, network_of

NAME: Final = "cilium-config"
HUBBLE_TLS: Final = "/var/lib/cilium/tls/hubble"
_WORKLOADS: Final = (
    "source_ip,source_namespace,source_workload,"
    "destination_ip,destination_namespace,destination_workload,traffic_direction"
)
_HUBBLE_METRICS: Final = (
    f"dns drop tcp flow port-distribution icmp httpV2:labelsContext={_WORKLOADS}"
)


def config(values: Values) -> dict[str, str]:
    """Return the keys and values, sorted by key."""
    keys = {
        **CONSTANTS,
        "debug": _flag(values.debug),
        "policy-audit-mode": _flag(values.config.policy_audit_mode is True),
        "enable-ipv4": _flag(values.ipv4),
        "enable-ipv6": _flag(values.ipv6),
        "operator-api-serve-addr": f"{_loopback(values)}:{ports.OPERATOR_HEALTH}",
        **_routing(values),
        **_masquerading(values),
        **_services(values),
        **_egress_gateway(values),
        **values.ipam.keys(_ranges(values)),
        **_devices(values),
        **_encryption(values),
        **_announcements(values),
        **_hubble(values),
        "cni-exclusive": _flag(values.config.cni is None or values.config.cni.exclusive),
    }
    return dict(sorted(keys.items()))


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
    ipv4, ipv6 = values.masquerades
    keys = {"enable-ipv4-masquerade": _flag(ipv4), "enable-ipv6-masquerade": _flag(ipv6)}
    if values.bpf_masquerade is not None:
        keys["enable-bpf-masquerade"] = _flag(values.bpf_masquerade)
    return keys


def _services(values: Values) -> dict[str, str]:
    replaces_kube_proxy = values.kube_proxy_replacement
    # Redirecting queries to the node's own DNS requires socket load balancing. Agents that
    # replace kube-proxy enable it themselves.
    socket_balancing = values.node_local_dns and not replaces_kube_proxy
    keys = {
        "bpf-lb-mode": values.config.load_balancing_mode or "snat",
        "bpf-lb-sock": _flag(socket_balancing),
        "enable-local-redirect-policy": _flag(values.node_local_dns),
        # kube-proxy serves health checks of nodes itself; agents would fight it for the ports.
        "enable-health-check-nodeport": _flag(replaces_kube_proxy),
        "enable-health-check-loadbalancer-ip": _flag(replaces_kube_proxy),
    }
    if replaces_kube_proxy:
        keys["kube-proxy-replacement"] = "true"
        anywhere = "0.0.0.0" if values.ipv4 else "[::]"  # noqa: S104 - load balancers are outside
        address = f"{anywhere}:{ports.KUBE_PROXY_HEALTH}"
        keys["kube-proxy-replacement-healthz-bind-address"] = address
    socket = values.config.bpf_socket_lb_hostns_only
    if socket is not None and socket.enabled:
        keys["bpf-lb-sock-hostns-only"] = "true"
    return keys


def _egress_gateway(values: Values) -> dict[str, str]:
    """Return the switch under its name since cilium 1.19 and under its earlier one."""
    gateway = values.config.egress_gateway
    enabled = _flag(gateway is not None and gateway.enabled)
    return {"enable-egress-gateway": enabled, "enable-ipv4-egress-gateway": enabled}


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
        "wireguard-persistent-keepalive": "0s",
    }
    strict = values.strict_encryption
    return keys if strict is None else keys | _strict(strict)


def _strict(strict: StrictEncryption) -> dict[str, str]:
    """Return settings under both names: agents of 1.18 may still restart during an upgrade."""
    allows = _flag(strict.allows_remote_nodes)
    return {
        "enable-encryption-strict-mode": "true",
        "encryption-strict-mode-cidr": strict.cidr,
        "encryption-strict-mode-allow-remote-node-identities": allows,
        "enable-encryption-strict-mode-egress": "true",
        "encryption-strict-egress-cidr": strict.cidr,
        "encryption-strict-egress-allow-remote-node-identities": allows,
    }


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
        "hubble-disable-tls": "false",
        "hubble-listen-address": f":{ports.HUBBLE}",
        "hubble-metrics-server": f":{ports.HUBBLE_METRICS}",
        "hubble-tls-cert-file": f"{HUBBLE_TLS}/server.crt",
        "hubble-tls-key-file": f"{HUBBLE_TLS}/server.key",
        "hubble-tls-client-ca-files": f"{HUBBLE_TLS}/client-ca.crt",
    }
    if values.hubble:
        keys |= {
            "hubble-socket-path": "/var/run/cilium/hubble.sock",
            "hubble-metrics": _HUBBLE_METRICS,
            "hubble-metrics-server-enable-tls": "false",
        }
    return keys
