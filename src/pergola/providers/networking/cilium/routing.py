"""Routing between nodes, computed from `tunnel`, `overlay` and the native ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pergola.providers.networking.cilium.config import NetworkConfig

DISABLED: Final = "disabled"
VXLAN: Final = "vxlan"
TUNNELS: Final = (VXLAN, "geneve", DISABLED)


@dataclass(frozen=True, slots=True)
class Routing:
    """Routing of packets between nodes (spec 40 §6.3 step 3, §6.7).

    Attributes:
        tunnel: the encapsulation, or `disabled`.
        native_ipv4: whether IPv4 packets to pods keep their source address.
        native_ipv6: the same for IPv6.
        direct_routes: whether nodes have routes to each other's pods.
    """

    tunnel: str
    native_ipv4: bool
    native_ipv6: bool
    direct_routes: bool

    @property
    def is_native(self) -> bool:
        """Whether packets travel without encapsulation."""
        return self.tunnel == DISABLED


def routing(config: NetworkConfig, families: Sequence[str]) -> Routing:
    """Return the routing: `overlay` decides if it is set, otherwise the user's values stay.

    A native range that is not set follows the tunnel: without a tunnel, agents that masquerade do
    not start unless they know the range.
    """
    tunnel, native_ipv4, native_ipv6 = _configured(config)
    return Routing(
        tunnel,
        native_ipv4 and "IPv4" in families,
        native_ipv6 and "IPv6" in families,
        direct_routes(config),
    )


def direct_routes(config: NetworkConfig) -> bool:
    """Whether nodes get routes to each other's pods, which takes effect without an overlay only."""
    overlay = config.overlay
    return overlay is not None and not overlay.enabled and overlay.create_pod_routes is True


def _configured(config: NetworkConfig) -> tuple[str, bool, bool]:
    tunnel = config.tunnel or VXLAN
    if config.overlay is None:
        native = tunnel == DISABLED
        return (
            tunnel,
            _or(config.ipv4_native_routing_cidr_enabled, native),
            _or(config.ipv6_native_routing_cidr_enabled, native),
        )
    if config.overlay.enabled:
        return (VXLAN if tunnel == DISABLED else tunnel), False, False
    return DISABLED, True, True


def _or(value: bool | None, default: bool) -> bool:
    return default if value is None else value
