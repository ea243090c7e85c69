"""Warnings about a valid config: settings that are overridden or have no effect (Beyond 11)."""

from collections.abc import Iterator

from pergola.providers.networking.calico.config import NetworkConfig
from pergola.providers.networking.calico.values import (
    auto_scaling_of,
    backend_of,
    chosen_ipv4_mode,
    has_vxlan,
    ipv4_mode,
    ipv6_mode,
    overlay_of,
)
from pergola.providers.networking.plugin import Plan


def advice(plan: Plan[NetworkConfig]) -> Iterator[str]:
    """Yield a sentence for each contradiction, in the order of the config's fields."""
    config = plan.config
    yield from _overridden(plan)
    yield from _without_effect(config)
    if plan.ipv4 and plan.ipv6 and config.ipam and config.ipam.cidr:
        yield "ipam.cidr has no effect in dual-stack clusters"
    yield from _scaling(plan)
    if config.ipip:
        yield "ipip has no effect; remove it, or set ipv4.mode"
    if config.ip_autodetection_method:
        yield "ipAutodetectionMethod has no effect; remove it, or set ipv4.autoDetectionMethod"


def _overridden(plan: Plan[NetworkConfig]) -> Iterator[str]:
    config, backend = plan.config, backend_of(plan)
    if config.backend and config.backend != backend:
        yield f'backend "{config.backend}" is overridden by the overlay: it is "{backend}"'
    desired = chosen_ipv4_mode(config)
    if plan.ipv4 and desired and desired != ipv4_mode(plan):
        yield f'ipv4.mode "{desired}" is overridden by the overlay: it is "{ipv4_mode(plan)}"'
    elif plan.ipv4 and backend == "none" and desired not in (None, "Never", "Off"):
        yield f'ipv4.mode "{desired}" contradicts backend "none", which encapsulates nothing'
    if backend == "vxlan" and plan.ipv4 and not _has_vxlan_pool(config):
        yield 'backend "vxlan" routes only for ipv4.pool "vxlan", which is not set'
    if plan.ipv6 and config.ipv6 and config.ipv6.mode not in (None, ipv6_mode(plan)):
        mode = ipv6_mode(plan)
        yield f'ipv6.mode "{config.ipv6.mode}" is overridden by the overlay: it is "{mode}"'


def _has_vxlan_pool(config: NetworkConfig) -> bool:
    pool = config.ipv4.pool if config.ipv4 else None
    return pool == "vxlan" or (pool is None and has_vxlan(config))


def _without_effect(config: NetworkConfig) -> Iterator[str]:
    overlay = overlay_of(config)
    if config.overlay and config.overlay.create_pod_routes and overlay is not False:
        yield "overlay.createPodRoutes has no effect, because overlay.enabled is not false"
    if config.snat_to_upstream_dns and overlay is not False:
        yield "snatToUpstreamDNS has no effect, because overlay.enabled is not false"
    if has_vxlan(config):
        if overlay is False:
            yield "vxlan.enabled encapsulates nothing, because overlay.enabled is false"
        if config.ipam and config.ipam.type == "host-local":
            yield 'ipam.type "host-local" is overridden by vxlan.enabled: it is "calico-ipam"'
        if config.ipv4 and config.ipv4.pool == "ipip":
            yield 'ipv4.pool "ipip" contradicts vxlan.enabled'
    if config.multus and config.multus.install_cni_plugins and not config.multus.enabled:
        yield "multus.installCNIPlugins has no effect, because multus.enabled is not true"


def _scaling(plan: Plan[NetworkConfig]) -> Iterator[str]:
    scaling = plan.config.auto_scaling
    if scaling is None:
        return
    mode = auto_scaling_of(plan.config, plan.shoot)
    if scaling.mode and scaling.mode != mode:
        yield f'autoScaling.mode is "{mode}", because the Shoot has no vertical pod autoscaler'
    if scaling.resources and mode == "cluster-proportional":
        yield 'autoScaling.resources has no effect in mode "cluster-proportional"'
