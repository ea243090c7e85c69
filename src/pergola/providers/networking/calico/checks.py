"""Checks of a config of Calico; each finding has its path in the config.

A config that passes these checks can be rendered: everything that rendering would reject is found
here.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.ip_ranges import is_address, is_network
from pergola.api.objects import map_at
from pergola.extension_api.cluster import Shoot
from pergola.kube.quantities import QuantityError, parse_quantity
from pergola.providers.networking.calico.config import IPAM, IPv4, IPv6, NetworkConfig

BACKENDS: Final = ("bird", "none", "vxlan")
IPAM_TYPES: Final = ("host-local", "calico-ipam")
POOLS: Final = ("ipip", "vxlan")
MODES: Final = ("Always", "Never", "CrossSubnet", "Off")
VXLAN_MODES: Final = ("Always", "Never")
IPV6_MODES: Final = ("Always", "Never", "CrossSubnet")
AUTO_SCALING_MODES: Final = ("cluster-proportional", "vpa", "static")
LOOP_PREVENTIONS: Final = ("Disabled", "Drop", "Reject")
USE_POD_CIDR: Final = "usepodcidr"

KUBE_PROXY: Final = "spec.kubernetes.kubeProxy"
NEEDS_EBPF: Final = (
    "Disabling kube-proxy is forbidden in conjunction with calico without running in ebpf dataplane"
)
MODE_WITHOUT_KUBE_PROXY: Final = "kube-proxy mode must not be set if kube-proxy is disabled"

_LONGEST_REGEX: Final = 1024


def check(config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
    """Yield the problems of a config for these IP families."""
    yield from _one_of("backend", config.backend, BACKENDS)
    yield from _ipam(config.ipam, families)
    yield from _ipv4(config.ipv4, families)
    yield from _ipv6(config.ipv6, families)
    yield from _mtu(config.veth_mtu)
    yield from _auto_scaling(config)
    yield from _one_of("serviceLoopPrevention", config.service_loop_prevention, LOOP_PREVENTIONS)
    yield from _one_of("ipip", config.ipip, MODES)
    if config.ip_autodetection_method is not None:
        yield from _auto_detection("ipAutodetectionMethod", config.ip_autodetection_method)


def check_shoot(config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
    """Yield a problem if nothing routes Services: without kube-proxy, only eBPF does (§7.2)."""
    if shoot.kube_proxy_enabled:
        return
    if not (config.ebpf_dataplane and config.ebpf_dataplane.enabled):
        yield forbidden(f"{KUBE_PROXY}.enabled", NEEDS_EBPF)
    if map_at(shoot.raw, "spec", "kubernetes", "kubeProxy").get("mode"):
        yield forbidden(f"{KUBE_PROXY}.mode", MODE_WITHOUT_KUBE_PROXY)


def _one_of(path: str, value: str | None, supported: Sequence[str]) -> Iterator[Cause]:
    if value is not None and value not in supported:
        field = path.rpartition(".")[2]
        values = ", ".join(supported)
        yield invalid(
            path, value, f'unsupported value "{value}" for {field}, supported values are [{values}]'
        )


def _ipam(ipam: IPAM | None, families: Collection[str]) -> Iterator[Cause]:
    if ipam is None:
        return
    yield from _one_of("ipam.type", ipam.type or None, IPAM_TYPES)
    if ipam.type == "calico-ipam" and "IPv6" in families:
        yield invalid("ipam.type", ipam.type, "calico-ipam is only supported with IPv4 alone")
    if ipam.cidr is not None and ipam.cidr.lower() != USE_POD_CIDR and not is_network(ipam.cidr):
        yield invalid("ipam.cidr", ipam.cidr, 'must be "usePodCIDR" or a CIDR')


def _ipv4(ipv4: IPv4 | None, families: Collection[str]) -> Iterator[Cause]:
    if ipv4 is None:
        return
    if "IPv4" not in families:
        yield forbidden("ipv4", "IPv4 configuration must not be specified without IPv4 networking")
    yield from _one_of("ipv4.pool", ipv4.pool, POOLS)
    yield from _one_of("ipv4.mode", ipv4.mode, VXLAN_MODES if ipv4.pool == "vxlan" else MODES)
    yield from _auto_detection("ipv4.autoDetectionMethod", ipv4.auto_detection_method)


def _ipv6(ipv6: IPv6 | None, families: Collection[str]) -> Iterator[Cause]:
    if ipv6 is None:
        return
    if "IPv6" not in families:
        yield forbidden("ipv6", "IPv6 configuration must not be specified without IPv6 networking")
    yield from _one_of("ipv6.pool", ipv6.pool, ("vxlan",))
    yield from _one_of("ipv6.mode", ipv6.mode, VXLAN_MODES if ipv6.pool == "vxlan" else IPV6_MODES)
    yield from _auto_detection("ipv6.autoDetectionMethod", ipv6.auto_detection_method)


def _mtu(mtu: str | None) -> Iterator[Cause]:
    if mtu is not None and not (re.fullmatch("[+-]?[0-9]{1,9}", mtu) and int(mtu) >= 0):
        yield invalid("vethMTU", mtu, "must be an integer that is not negative, as text")


def _auto_scaling(config: NetworkConfig) -> Iterator[Cause]:
    scaling = config.auto_scaling
    if scaling is None:
        return
    yield from _one_of("autoScaling.mode", scaling.mode, AUTO_SCALING_MODES)
    if scaling.resources is not None:
        yield from _amounts("autoScaling.resources.node", scaling.resources.node or {})
        yield from _amounts("autoScaling.resources.typha", scaling.resources.typha or {})


def _amounts(path: str, amounts: Mapping[str, int | str]) -> Iterator[Cause]:
    for name, amount in amounts.items():
        if name not in ("cpu", "memory"):
            yield invalid(f"{path}.{name}", name, "only cpu and memory can be set")
        elif not _is_positive(amount):
            yield invalid(f"{path}.{name}", amount, "must be a quantity greater than zero")


def _is_positive(amount: int | str) -> bool:
    try:
        return parse_quantity(amount) > 0
    except QuantityError:
        return False


def _auto_detection(path: str, method: str | None) -> Iterator[Cause]:
    """Check a detection method; `cidr=` takes a list, as in Calico and in rendered defaults."""
    if method is None or (not method and path != "ipAutodetectionMethod"):
        return
    name, equals, parameter = method.partition("=")
    if name in ("first-found", "kubernetes-internal-ip"):
        if equals:
            yield invalid(path, method, f"{name} takes no parameter")
    elif name not in _PARAMETERS or not equals:
        yield invalid(path, method, f"unsupported value, supported values are [{_METHODS}]")
    elif not _PARAMETERS[name][0](parameter):
        yield invalid(path, method, f"{name} needs {_PARAMETERS[name][1]}")


def _are_cidrs(text: str) -> bool:
    return all(is_network(cidr.strip()) for cidr in text.split(","))


def _is_host(text: str) -> bool:
    return is_address(text) or is_dns_subdomain(text)


def _is_regex(text: str) -> bool:
    if not 0 < len(text) <= _LONGEST_REGEX:
        return False
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):  # including repetitions and nested groups
        return False
    return True


_PARAMETERS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "can-reach": (_is_host, "an IP address or a DNS name"),
    "interface": (_is_regex, "a regular expression"),
    "skip-interface": (_is_regex, "a regular expression"),
    "cidr": (_are_cidrs, "CIDRs, separated by commas"),
}
_METHODS: Final = ", ".join(
    ["first-found", "kubernetes-internal-ip", *(f"{name}=…" for name in _PARAMETERS)]
)
