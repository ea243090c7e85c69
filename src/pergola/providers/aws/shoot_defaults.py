"""Defaults of Shoots on AWS (spec 30 §1.1, §7.3)."""

from typing import Final

from pergola.admission.draft import Draft, Path
from pergola.api.objects import JsonObject, JsonValue
from pergola.extension_api.cluster import Shoot
from pergola.extensions.webhooks.shoots import is_left_alone, network_of
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG

OVERLAY: Final[Path] = ("spec", "networking", "providerConfig", "overlay")
ROUTED_NETWORKS: Final = ("calico", "cilium")
"""Network plugins that can work without an overlay."""

_INFRASTRUCTURE: Final[Path] = ("spec", "provider", "infrastructureConfig")
_CONTROL_PLANE: Final[Path] = ("spec", "provider", "controlPlaneConfig")
_MTU: Final[Path] = (*_INFRASTRUCTURE, "enableMTUCustomizer")
_ROUTES: Final[Path] = (*_CONTROL_PLANE, "cloudControllerManager", "useCustomRouteController")
_NODE_LOCAL_DNS: Final[Path] = ("spec", "systemComponents", "nodeLocalDNS")
_FORCE_TCP: Final[Path] = (*_NODE_LOCAL_DNS, "forceTCPToUpstreamDNS")
_LOAD_BALANCERS: Final[Path] = (*_CONTROL_PLANE, "loadBalancerController", "enabled")


def mutate_shoot(draft: Draft, old: JsonObject | None) -> None:
    """Set the defaults of a new Shoot, and keep dependent fields consistent.

    Shoots without workers, moving to another seed, or with an unchanged spec are not modified.

    Args:
        old: the Shoot as it is stored; None while it is created.
    """
    if is_left_alone(draft.object, old):
        return
    if network_of(draft.object) in ROUTED_NETWORKS:
        _default_overlay(draft, old)
        _follow_overlay(draft)
    _default_dns_over_udp(draft)
    if old is None:
        _default_mtu(draft)
    if "IPv6" in Shoot(draft.object).ip_families:
        _set(
            draft,
            _LOAD_BALANCERS,
            to=True,
            because="only this controller makes load balancers with IPv6",
        )


def _default_overlay(draft: Draft, old: JsonObject | None) -> None:
    if draft.get(*OVERLAY) is not None:
        return
    if old is None:
        _set(draft, OVERLAY, to={"enabled": False}, because="AWS routes pods without an overlay")
    elif (before := Draft(old).get(*OVERLAY)) is not None:
        _set(draft, OVERLAY, to=before, because="it was left out, and stays as it was")


def _follow_overlay(draft: Draft) -> None:
    """Enable pod routes exactly if there is no overlay, whatever the user has set.

    Without routes or an overlay, pods on other nodes are unreachable. An overlay that is not set is
    on; one that is no boolean is left to validation.
    """
    is_set = draft.get(*OVERLAY) is not None
    enabled = draft.get(*OVERLAY, "enabled") if is_set else True
    if isinstance(enabled, bool) and (is_set or draft.get(*_ROUTES) is not None):
        _set(
            draft,
            _ROUTES,
            to=not enabled,
            because="pods need routes if and only if they have no overlay",
        )


def _default_dns_over_udp(draft: Draft) -> None:
    """Default the protocol of upstream DNS queries of node-local DNS."""
    if draft.get(*_NODE_LOCAL_DNS, "enabled") is True and draft.get(*_FORCE_TCP) is None:
        because = "large clusters on AWS resolve names more slowly over TCP"
        _set(draft, _FORCE_TCP, to=False, because=because)


def _default_mtu(draft: Draft) -> None:
    """Default the MTU, unless the config is missing, which validation reports."""
    if draft.get(*_INFRASTRUCTURE) is not None and draft.get(*_MTU) is None:
        _set(draft, _MTU, to=False, because="nodes of new Shoots keep the MTU that AWS gives them")


def _set(draft: Draft, path: Path, *, to: JsonValue, because: str) -> None:
    """Set a value unless something other than a map is in the way, which validation reports."""
    above = (draft.get(*path[:depth]) for depth in range(1, len(path)))
    if not all(part is None or isinstance(part, dict) for part in above):
        return
    if path[: len(_CONTROL_PLANE)] == _CONTROL_PLANE and draft.get(*_CONTROL_PLANE) is None:
        gvk = CONTROL_PLANE_CONFIG
        draft.set(_CONTROL_PLANE, {"apiVersion": gvk.api_version, "kind": gvk.kind}, because)
    draft.set(path, to, because)
