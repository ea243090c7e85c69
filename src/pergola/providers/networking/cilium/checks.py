"""Validation of a config before anything is rendered (spec 40 §6.1, Beyond 11)."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.field_errors import Cause, forbidden, invalid, required
from pergola.api.ip_ranges import is_address
from pergola.api.objects import map_at
from pergola.extension_api.cluster import Shoot
from pergola.providers.networking.cilium.config import (
    Encryption,
    KubeProxy,
    L2Announcements,
    NetworkConfig,
)
from pergola.providers.networking.cilium.routing import TUNNELS, routing

STORES: Final = ("kubernetes",)
LOAD_BALANCING_MODES: Final = ("snat", "dsr", "hybrid")
ENCRYPTION_MODES: Final = ("wireguard",)
LEASE_DURATION: Final = timedelta(seconds=15)
RENEW_DEADLINE: Final = timedelta(seconds=5)
RETRY_PERIOD: Final = timedelta(seconds=2)
_JITTER: Final = 1.2  # client-go renews a Lease up to this much later than configured
_DEVICE_LENGTH: Final = 15  # IFNAMSIZ without the final zero
_NOT_IN_DEVICES: Final = frozenset("/:,")
_NAME_LENGTH: Final = 253
_LABEL_LENGTH: Final = 63
_IN_NAMES: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_PROVIDER_CONFIG: Final = "spec.networking.providerConfig"


def check(config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
    """Yield settings that no cluster of these IP families can run, with paths in the config."""
    yield from _one_of("tunnel", config.tunnel, TUNNELS)
    yield from _one_of("store", config.store, STORES)
    yield from _one_of("loadBalancingMode", config.load_balancing_mode, LOAD_BALANCING_MODES)
    if config.kubeproxy is not None:
        yield from _kube_proxy(config.kubeproxy)
    if config.mtu is not None and config.mtu < 0:
        yield invalid("mtu", config.mtu, "must not be negative; 0 lets nodes detect it")
    yield from _devices(config)
    if config.l2_announcements is not None and config.l2_announcements.enabled:
        yield from _leases(config.l2_announcements)
    if config.encryption is not None and config.encryption.enabled:
        yield from _encryption(config.encryption, families)
    yield from _load_balancing(config, families)
    yield from _egress_gateway(config, families)


def check_shoot(config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
    """Yield contradictions to the Shoot, with paths in the Shoot.

    A field missing from the Shoot's status is not an error here: it may appear later, and
    rendering reports it if it does not.
    """
    proxied = shoot.kube_proxy_enabled
    if proxied and config.egress_gateway is not None and config.egress_gateway.enabled:
        yield forbidden(
            f"{_PROVIDER_CONFIG}.egressGateway.enabled",
            "kubeProxyReplacement must be enabled for egress gateways: set"
            " spec.kubernetes.kubeProxy.enabled to false",
        )
    if proxied and shoot.kube_proxy_mode == "IPVS" and has_node_local_dns(shoot):
        yield forbidden(
            "spec.kubernetes.kubeProxy.mode",
            "node-local DNS does not work with cilium and kube-proxy in mode IPVS; use IPTables,"
            " or disable kube-proxy",
        )


def has_node_local_dns(shoot: Shoot) -> bool:
    """Return whether every node runs a DNS cache for its pods."""
    enabled = map_at(shoot.raw, "spec", "systemComponents", "nodeLocalDNS").get("enabled")
    return enabled is True


def _one_of(field: str, value: str | None, supported: Sequence[str]) -> Iterator[Cause]:
    if value is not None and value not in supported:
        values = ", ".join(supported)
        yield invalid(
            field,
            value,
            f'unsupported value "{value}" for {field}, supported values are [{values}]',
        )


def _kube_proxy(kube_proxy: KubeProxy) -> Iterator[Cause]:
    host, port = kube_proxy.k8s_service_host, kube_proxy.k8s_service_port
    if host is not None and not (is_address(host) or _is_dns_name(host)):
        yield invalid("kubeproxy.k8sServiceHost", host, "must be an IP address or a DNS name")
    if port is not None and not 1 <= port <= 65535:
        yield invalid("kubeproxy.k8sServicePort", port, "must be between 1 and 65535, inclusive")


def _is_dns_name(text: str) -> bool:
    return len(text) <= _NAME_LENGTH and all(map(_is_dns_label, text.split(".")))


def _is_dns_label(text: str) -> bool:
    return (
        0 < len(text) <= _LABEL_LENGTH
        and _IN_NAMES.issuperset(text)
        and "-" not in (text[0], text[-1])
    )


def _devices(config: NetworkConfig) -> Iterator[Cause]:
    named = [(f"devices[{index}]", device) for index, device in enumerate(config.devices)]
    if config.direct_routing_device is not None:
        named.append(("directRoutingDevice", config.direct_routing_device))
    for path, device in named:
        if not _is_device(device):
            yield invalid(
                path,
                device,
                "must be the name of a Linux network device: 1 to 15 printable characters, without"
                " blanks, slashes, colons and commas",
            )


def _is_device(name: str) -> bool:
    return (
        0 < len(name.encode()) <= _DEVICE_LENGTH
        and name not in (".", "..")
        and name.isprintable()
        and not any(char.isspace() or char in _NOT_IN_DEVICES for char in name)
    )


def _leases(announcements: L2Announcements) -> Iterator[Cause]:
    """Apply client-go's rules for Leases, without which agents do not start."""
    duration = announcements.lease_duration or LEASE_DURATION
    deadline = announcements.lease_renew_deadline or RENEW_DEADLINE
    retry = announcements.lease_retry_period or RETRY_PERIOD
    spans = {"leaseDuration": duration, "leaseRenewDeadline": deadline, "leaseRetryPeriod": retry}
    for field, span in spans.items():
        if span <= timedelta():
            yield _span(field, span, "must be positive")
    if duration <= deadline:
        yield _span(
            "leaseDuration",
            duration,
            f"must be longer than leaseRenewDeadline, {format_duration(deadline)}",
        )
    if deadline <= _JITTER * retry:
        detail = f"must be longer than {_JITTER} times leaseRetryPeriod, {format_duration(retry)}"
        yield _span("leaseRenewDeadline", deadline, detail)


def _span(field: str, span: timedelta, detail: str) -> Cause:
    return invalid(f"l2Announcements.{field}", format_duration(span), detail)


def _encryption(encryption: Encryption, families: Sequence[str]) -> Iterator[Cause]:
    if not encryption.mode:
        yield required("encryption.mode", 'say "wireguard" to encrypt traffic')
    yield from _one_of("encryption.mode", encryption.mode or None, ENCRYPTION_MODES)
    if encryption.strict_mode and "IPv4" not in families:
        yield invalid(
            "encryption.strictMode", value=True, detail="covers only IPv4, which is not in use"
        )


def _load_balancing(config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
    if config.load_balancing_mode == "dsr" and not routing(config, families).native_ipv4:
        yield invalid(
            "loadBalancingMode",
            "dsr",
            "needs an IPv4 native routing CIDR: disable the overlay in a cluster with IPv4",
        )


def _egress_gateway(config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
    if config.egress_gateway is None or not config.egress_gateway.enabled:
        return
    path = "egressGateway.enabled"
    if routing(config, families).is_native:
        yield forbidden(
            path,
            "cilium must run with an overlay network for egress gateways: set overlay.enabled to"
            " true, or tunnel to vxlan or geneve",
        )
    if not masquerades_with_bpf(config, families):
        yield forbidden(path, "egress gateways need IPv4 masquerading by eBPF")


def masquerades_with_bpf(config: NetworkConfig, families: Sequence[str]) -> bool:
    """Return whether eBPF gives IPv4 packets that leave the cluster the address of their node."""
    return (
        "IPv4" in families
        and config.enable_ipv4_masquerade is not False
        and config.enable_bpf_masquerade is not False
        and not rewrites_sources(config)
    )


def rewrites_sources(config: NetworkConfig) -> bool:
    """Return whether a sidecar rewrites source addresses with iptables, which excludes eBPF."""
    dns, everything = config.snat_to_upstream_dns, config.snat_out_of_cluster
    return (dns is not None and dns.enabled) or (everything is not None and everything.enabled)
