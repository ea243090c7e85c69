"""The replicas of the controller that writes pod routes into route tables (spec 30 §7.2)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import map_at
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_leniently
from pergola.providers.aws.control_plane.cloud_provider import IPV4, known_families
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.overlay import has_overlay

_CONFIG: Final = "spec.provider.controlPlaneConfig"
_SWITCH: Final = f"{_CONFIG}.cloudControllerManager.useCustomRouteController"


class Replicas(NamedTuple):
    """The number of replicas of a controller, and the reason."""

    replicas: int
    reason: str


def route_controller_replicas(
    config: ControlPlaneConfig | None, families: Iterable[str], *, awake: int = 1
) -> int:
    """Return the replicas of the controller that writes pod routes into route tables.

    There are none with an overlay or for IPv6 alone.

    Args:
        families: the Shoot's IP families; IPv4 if there are none.
        awake: the number if it is needed; 0 while the Shoot is hibernated.
    """
    is_used = config is not None and config.uses_route_controller
    return awake if is_used and IPV4 in known_families(families) else 0


def route_controller(shoot: Shoot) -> Replicas:
    """Return the replicas of the route controller that a Shoot needs, and the reason.

    Raises:
        ExtensionError: the Shoot's overlay setting is neither true nor false.
        Malformed: its `controlPlaneConfig` has a value of a wrong type.
    """
    config = _control_plane_config(shoot)
    replicas = route_controller_replicas(config, shoot.ip_families, awake=shoot.replicas(1))
    return Replicas(replicas, _why_routes(shoot, config))


def _why_routes(shoot: Shoot, config: ControlPlaneConfig | None) -> str:
    """Explain the switch, and a switch that contradicts the overlay."""
    has_switch = config is not None and config.uses_route_controller
    overlay = has_overlay(shoot.raw)
    if IPV4 not in known_families(shoot.ip_families):
        return "the Shoot has only IPv6, whose pods need no routes"
    if not has_switch and overlay:
        return "pods communicate through an overlay, and need no routes"
    if not has_switch:
        return (
            f"no controller writes pod routes, although there is no overlay: set {_SWITCH} to true"
        )
    if shoot.hibernation_enabled:
        return "the Shoot is hibernated"
    if overlay:
        return f"{_SWITCH} is true, although pods communicate through an overlay and need no routes"
    return "there is no overlay: it writes a route for each node into the tagged route tables"


def _control_plane_config(shoot: Shoot) -> ControlPlaneConfig | None:
    value = map_at(shoot.raw, "spec", "provider").get("controlPlaneConfig")
    if value is None:
        return None
    return read_leniently(ControlPlaneConfig, value, CONTROL_PLANE_CONFIG, path=_CONFIG)
