"""Rules about `spec.virtualCluster`, without its API servers and Gardener (spec 21 §7.4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid, unsupported
from pergola.api.ip_ranges import is_network, overlap, parse_network
from pergola.api.known.feature_gate_rules import check_kubernetes_feature_gates
from pergola.api.known.kubernetes_versions import SUPPORTED, Version, parse_version
from pergola.api.operator_v1alpha1 import GardenSpec
from pergola.api.operator_v1alpha1.etcd import Etcd, EtcdEvents
from pergola.api.operator_v1alpha1.virtual_cluster import KubeControllerManager
from pergola.garden.rules.amounts import check_autoscaling, check_quantity
from pergola.garden.rules.names import check_domains
from pergola.garden.rules.runtime_cluster import ranges_of

_PATH: Final = "spec.virtualCluster"
_WITHOUT_NODES: Final = "must not be set: the virtual cluster has no nodes"
_OF_RUNTIME: Final = {"pods": "pod", "services": "service", "nodes": "node"}


def check_virtual_cluster(spec: GardenSpec) -> Iterator[Cause]:
    """Yield the findings about names, etcds and networks of the virtual cluster."""
    virtual = spec.virtual_cluster
    yield from check_domains(virtual.dns.domains, spec.dns, f"{_PATH}.dns.domains")
    yield from _etcd(virtual.etcd, f"{_PATH}.etcd")
    yield from _services(spec, f"{_PATH}.networking.services")


def check_kubernetes_version(text: str) -> Iterator[Cause]:
    """Yield a finding if the operator does not support a version of Kubernetes."""
    version = parse_version(text)
    if version is None or version.of_minor not in SUPPORTED:
        yield unsupported(f"{_PATH}.kubernetes.version", text, map(str, SUPPORTED))


def check_controller_manager(manager: KubeControllerManager, version: Version) -> Iterator[Cause]:
    """Yield the findings about the settings of the kube-controller-manager."""
    path = f"{_PATH}.kubernetes.kubeControllerManager"
    of_nodes = {
        "nodeCIDRMaskSize": manager.node_cidr_mask_size,
        "nodeCIDRMaskSizeIPv6": manager.node_cidr_mask_size_ipv6,
        "horizontalPodAutoscaler": manager.horizontal_pod_autoscaler,
        "podEvictionTimeout": manager.pod_eviction_timeout,
        "nodeMonitorGracePeriod": manager.node_monitor_grace_period,
    }
    for field, value in of_nodes.items():
        if value is not None:
            yield forbidden(f"{path}.{field}", _WITHOUT_NODES)
    gates = manager.feature_gates
    yield from check_kubernetes_feature_gates(gates, version, f"{path}.featureGates")


def _etcd(etcd: Etcd, path: str) -> Iterator[Cause]:
    parts: tuple[tuple[str, EtcdEvents, str], ...] = (
        ("main", etcd.main, "300M"),
        ("events", etcd.events, "60M"),
    )
    for name, part, memory in parts:
        at = f"{path}.{name}"
        yield from check_autoscaling(part.autoscaling, {"memory": memory}, f"{at}.autoscaling")
        if part.storage is not None:
            yield from check_quantity(part.storage.capacity, f"{at}.storage.capacity")


def _services(spec: GardenSpec, path: str) -> Iterator[Cause]:
    services = spec.virtual_cluster.networking.services
    runtime = ranges_of(spec.runtime_cluster.networking)
    for index, cidr in enumerate(services):
        at = f"{path}[{index}]"
        if not is_network(cidr):
            problem = f"cannot parse service network cidr: invalid CIDR address: {cidr}"
            yield invalid(at, cidr, problem)
            continue
        for field, name in _OF_RUNTIME.items():
            yield from _intersections(cidr, at, field, runtime[field], name)
    yield from _families(services, path)


def _intersections(
    cidr: str, path: str, field: str, others: list[str], name: str
) -> Iterator[Cause]:
    network = parse_network(cidr)
    for index, another in enumerate(others):
        if is_network(another) and overlap(network, parse_network(another)):
            problem = (
                f"{name} network of runtime cluster intersects with service network of virtual "
                f"cluster (spec.runtimeCluster.networking.{field}[{index}]: {another})"
            )
            yield invalid(path, cidr, problem)


def _families(services: list[str], path: str) -> Iterator[Cause]:
    listed = f"[{' '.join(services)}]"
    if len(services) > 2:
        yield forbidden(path, f"at most two service ranges allowed: {listed}")
    if len(services) == 2 and all(map(is_network, services)):
        first, second = map(parse_network, services)
        if first.version == second.version:
            yield forbidden(path, f"service ranges must be of different IP families: {listed}")
