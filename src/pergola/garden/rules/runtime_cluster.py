"""Rules about `spec.runtimeCluster` (spec 21 §7.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, unsupported
from pergola.api.ip_ranges import is_network, overlap, parse_network
from pergola.api.operator_v1alpha1 import GardenSpec
from pergola.api.operator_v1alpha1.runtime_cluster import (
    RuntimeNetworking,
    Settings,
    VerticalPodAutoscaler,
)
from pergola.garden.rules.amounts import check_quantity, check_scaled
from pergola.garden.rules.gardener_names import VPA_FEATURE_GATES
from pergola.garden.rules.names import check_domains

_PATH: Final = "spec.runtimeCluster"
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("Cluster", "Local")
_NETWORKS: Final = {"nodes": "node", "pods": "pod", "services": "service"}
_DISJOINT: Final = (("nodes", "services"), ("nodes", "pods"), ("pods", "services"))


def check_runtime_cluster(spec: GardenSpec) -> Iterator[Cause]:
    """Yield the findings about the runtime cluster."""
    runtime = spec.runtime_cluster
    yield from check_domains(runtime.ingress.domains, spec.dns, f"{_PATH}.ingress.domains")
    yield from _networking(runtime.networking, f"{_PATH}.networking")
    yield from _settings(runtime.settings, f"{_PATH}.settings")
    yield from _topology(spec, f"{_PATH}.settings.topologyAwareRouting.enabled")
    if runtime.volume.minimum_size is not None:
        yield from check_quantity(runtime.volume.minimum_size, f"{_PATH}.volume.minimumSize")


def ranges_of(networking: RuntimeNetworking) -> dict[str, list[str]]:
    """Return the networks of the runtime cluster, by field."""
    return {
        "nodes": networking.nodes,
        "pods": networking.pods,
        "services": networking.services,
    }


def _networking(networking: RuntimeNetworking, path: str) -> Iterator[Cause]:
    """Check networks; invalid IP families or ranges suppress the checks that depend on them."""
    if found := list(_families(networking.ip_families, f"{path}.ipFamilies")):
        yield from found
        return
    for index, blocked in enumerate(networking.block_cidrs):
        if not is_network(blocked):
            at = f"{path}.blockCIDRs[{index}]"
            yield invalid(at, blocked, f"invalid CIDR address: {blocked}")
    if found := list(_unreadable(networking, path)):
        yield from found
        return
    ranges = ranges_of(networking)
    for one, other in _DISJOINT:
        yield from _intersections(one, ranges[one], other, ranges[other], path)


def _families(families: list[str], path: str) -> Iterator[Cause]:
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield unsupported(f"{path}[{index}]", family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(f"{path}[{index}]", family)


def _unreadable(networking: RuntimeNetworking, path: str) -> Iterator[Cause]:
    for field, ranges in ranges_of(networking).items():
        what = f"cannot parse {_NETWORKS[field]} network cidr of runtime cluster"
        for index, cidr in enumerate(ranges):
            if not is_network(cidr):
                problem = f"{what}: invalid CIDR address: {cidr}"
                yield invalid(f"{path}.{field}[{index}]", cidr, problem)


def _intersections(
    one: str, ranges: list[str], other: str, others: list[str], path: str
) -> Iterator[Cause]:
    for index, cidr in enumerate(ranges):
        for another in others:
            if overlap(parse_network(cidr), parse_network(another)):
                problem = (
                    f"{_NETWORKS[one]} network of runtime cluster intersects with "
                    f"{_NETWORKS[other]} network of runtime cluster ({another})"
                )
                yield invalid(f"{path}.{one}[{index}]", cidr, problem)


def _settings(settings: Settings, path: str) -> Iterator[Cause]:
    policy = settings.load_balancer_services.external_traffic_policy
    if policy is not None and policy not in _POLICIES:
        at = f"{path}.loadBalancerServices.externalTrafficPolicy"
        yield unsupported(at, policy, _POLICIES)
    autoscaler = settings.vertical_pod_autoscaler
    yield from _autoscaler(autoscaler, f"{path}.verticalPodAutoscaler")


def _autoscaler(autoscaler: VerticalPodAutoscaler, path: str) -> Iterator[Cause]:
    for gate in autoscaler.feature_gates:
        if gate not in VPA_FEATURE_GATES:
            yield invalid(f"{path}.featureGates.{gate}", gate, "unknown feature gate")
    for name, quantity in autoscaler.max_allowed.items():
        at = f"{path}.maxAllowed.{name}"
        amount = yield from check_scaled(name, quantity, at)
        if amount == 0:
            yield invalid(at, quantity, "must be greater than 0")


def _topology(spec: GardenSpec, path: str) -> Iterator[Cause]:
    routing = spec.runtime_cluster.settings.topology_aware_routing
    if routing is None or not routing.enabled:
        return
    if len(spec.runtime_cluster.provider.zones) < 2:
        yield forbidden(
            path,
            "topology-aware routing can only be enabled on multi-zone garden runtime cluster "
            "(with at least two zones in spec.runtimeCluster.provider.zones)",
        )
    if spec.virtual_cluster.control_plane.high_availability is None:
        yield forbidden(
            path,
            "topology-aware routing can only be enabled when virtual cluster's high-availability "
            "is enabled",
        )
