"""Rules about workloads: priority, disruptions, volumes, and selectors of their pods."""

from collections.abc import Iterator
from posixpath import normpath
from typing import Final

from pergola.api.objects import GroupKind, JsonObject, labels_of, map_at, maps_at, namespace_of
from pergola.bundle.lint.manifests import (
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    Finding,
    Manifests,
    Workload,
)

_SYSTEM: Final = "kube-system"
_HIGH_AVAILABILITY: Final = "high-availability-config.resources.gardener.cloud/type"
_BUDGET: Final = GroupKind("policy", "PodDisruptionBudget")
_SERVICE: Final = GroupKind("", "Service")
_SELECTING: Final = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET)


def priority_class(manifests: Manifests) -> Iterator[Finding]:
    """Check that system pods have a priority class, so that user pods do not evict them."""
    for workload in manifests.workloads:
        if workload.namespace == _SYSTEM and not workload.pod.get("priorityClassName"):
            yield Finding(
                workload.object,
                f"{workload.path}.priorityClassName",
                f"pods in {_SYSTEM} need a priority class, such as system-cluster-critical",
            )


def disruption_budget(manifests: Manifests) -> Iterator[Finding]:
    """Check that a disruption budget protects every component with several replicas."""
    budgets = list(manifests.of_kind(_BUDGET))
    for workload in manifests.workloads:
        if not _is_highly_available(workload):
            continue
        if not any(_protects(budget, workload) for budget in budgets):
            yield Finding(
                workload.object,
                "spec.replicas",
                "its replicas need a PodDisruptionBudget that selects their labels in their"
                " namespace",
            )


def host_root(manifests: Manifests) -> Iterator[Finding]:
    """Check that no pod mounts the root directory of its node."""
    for workload in manifests.workloads:
        for i, volume in enumerate(maps_at(workload.pod, "volumes")):
            path = map_at(volume, "hostPath").get("path")
            if isinstance(path, str) and path and _is_root(path):
                yield Finding(
                    workload.object,
                    f"{workload.path}.volumes[{i}].hostPath.path",
                    f"volume {volume.get('name')} is the root directory of the node; mount only "
                    "the necessary directories",
                )


def selector_matches_template(manifests: Manifests) -> Iterator[Finding]:
    """Check that a controller's selector matches its pod template."""
    for workload in manifests.workloads:
        if workload.kind not in _SELECTING:
            continue
        selector = map_at(workload.object, "spec", "selector")
        if not selector or not workload.is_selected_by(selector):
            yield Finding(
                workload.object,
                "spec.selector",
                "does not match spec.template.metadata.labels",
            )


def selected_workload(manifests: Manifests) -> Iterator[Finding]:
    """Check that Services and disruption budgets select the pods of a workload."""
    for service in manifests.of_kind(_SERVICE):
        labels = map_at(service, "spec", "selector")
        external = map_at(service, "spec").get("type") == "ExternalName"
        if labels and not external and not _any(manifests, service, {"matchLabels": labels}):
            yield _selects_nothing(service)
    for budget in manifests.of_kind(_BUDGET):
        if not _any(manifests, budget, map_at(budget, "spec", "selector")):
            yield _selects_nothing(budget)


def _is_highly_available(workload: Workload) -> bool:
    if workload.kind not in (DEPLOYMENT, STATEFUL_SET):
        return False
    replicas = map_at(workload.object, "spec").get("replicas")
    several = isinstance(replicas, int) and replicas >= 2
    return several or _HIGH_AVAILABILITY in labels_of(workload.object)


def _protects(budget: JsonObject, workload: Workload) -> bool:
    return namespace_of(budget) == workload.namespace and workload.is_selected_by(
        map_at(budget, "spec", "selector")
    )


def _is_root(path: str) -> bool:
    # Two leading slashes survive normpath, and also denote the root.
    return not normpath(path).strip("/")


def _any(manifests: Manifests, obj: JsonObject, selector: JsonObject) -> bool:
    return any(manifests.selected(namespace_of(obj), selector))


def _selects_nothing(obj: JsonObject) -> Finding:
    return Finding(obj, "spec.selector", "selects no workload's pods in its namespace")
