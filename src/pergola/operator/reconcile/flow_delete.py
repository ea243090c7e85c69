"""The flow that deletes a Garden (spec 20 §18).

Parts in the virtual cluster are deleted before its API server, because its resource manager must
release the objects. Two checks hold the flow until nothing that still needs it is left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pergola.flow import Graph
from pergola.garden.components.catalog import component
from pergola.garden.components.component import Component
from pergola.garden.components.crds import CRDS, DELETED_GROUPS, definitions_of
from pergola.garden.components.etcd_druid import ETCD_DRUID
from pergola.operator.reconcile.cleanup import (
    delete_credentials,
    delete_generic_kubeconfig,
    delete_unique_objects,
    patch_garden_deleted,
)
from pergola.operator.reconcile.extension_resources.deletion import (
    BEFORE_GONE,
    add_extension_deletion_tasks,
)
from pergola.operator.reconcile.leftovers import Selection, ensure_no_etcds, ensure_none
from pergola.operator.run.run import Run

DELETION: Final = "Garden deletion"

ONLY_REQUIRED: Final = (
    "Ensuring only virtual garden ManagedResources which are required for cleanup exist"
)
NONE_VIRTUAL: Final = "Ensuring no virtual garden ManagedResources exist anymore"
NONE: Final = "Ensuring no ManagedResources exist anymore"
DISCONNECT: Final = "Invalidate client for virtual garden"
RESET: Final = (
    "Resetting RequiredVirtual condition on extensions since virtual cluster has been destroyed"
)
KUBECONFIG: Final = "Cleaning up generic token kubeconfig"
SECRETS: Final = "Cleaning up secrets"
UNIQUE: Final = "Cleaning up garbage-collectable ConfigMaps and Secrets"

_FIRST: Final = (
    "plutono",
    "gardener-metrics-exporter",
    "kube-state-metrics-runtime",
    "alertmanager-garden",
    "prometheus-longterm",
    "prometheus-garden",
    "opentelemetry-collector",
    "blackbox-exporter",
    "perses-operator",
    "gardener-operator-vpa",
    "gardener-operator-service-monitor",
    "gardener-discovery-server",
    "terminal-controller-manager",
    "gardener-dashboard",
    "gardener-scheduler",
    "gardener-controller-manager",
    "gardener-admission-controller",
    "gardener-apiserver",
)
"""Components that do not wait for others."""
_MONITORING: Final = ("alertmanager-garden", "prometheus-garden", "prometheus-longterm")
_GARDENER: Final = (
    "gardener-discovery-server",
    "terminal-controller-manager",
    "gardener-dashboard",
    "gardener-scheduler",
    "gardener-controller-manager",
    "gardener-admission-controller",
    "gardener-apiserver",
    "garden-system-virtual",
)
_NEEDED_BY_EXTENSIONS: Final = (
    "gardener-controller-manager",
    "gardener-admission-controller",
    "gardener-apiserver",
)
"""Components that outlive the extensions which are deleted before the API server."""
_MANAGER: Final = "virtual-garden-gardener-resource-manager"
_ACCESS: Final = ("gardener-access", "virtual-garden-kube-controller-manager")
_CONTROL_PLANE: Final = (
    "kube-apiserver-sni",
    "kube-apiserver-service",
    "virtual-garden-kube-apiserver",
    "virtual-garden-etcds",
    "istio-internal-load-balancing",
)
_NEEDED_BY_CLIENTS: Final = ("virtual-garden-kube-apiserver", _MANAGER)
_AFTER: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_FIRST, ()),
    "virtual-garden-istio-basic-auth-server": (*_MONITORING, "plutono"),
    "garden-system-virtual": ("gardener-apiserver",),
    "kube-apiserver-sni": (_MANAGER,),
    "kube-apiserver-service": ("kube-apiserver-sni",),
    "virtual-garden-kube-apiserver": (_MANAGER,),
    "virtual-garden-etcds": ("virtual-garden-kube-apiserver",),
    "istio-internal-load-balancing": ("virtual-garden-kube-apiserver", _MANAGER),
    **dict.fromkeys(
        ("etcd-druid", "istio", "vpa", "nginx-ingress", "pvc-autoscaler-garden"), _CONTROL_PLANE
    ),
    **dict.fromkeys(("fluent-operator-custom-resources-garden", "fluent-bit"), _CONTROL_PLANE),
    "fluent-operator": ("fluent-operator-custom-resources-garden", "fluent-bit"),
    "vali": ("fluent-operator-custom-resources-garden",),
    "victoria-logs": ("fluent-operator-custom-resources-garden",),
    "victoria-operator": ("victoria-logs",),
    "prometheus-operator": _MONITORING,
    "opentelemetry-operator": ("opentelemetry-collector", *_CONTROL_PLANE),
}
"""The components that must be gone before another one is deleted."""
_ON_SELF_HOSTED: Final = frozenset(
    {"etcd-druid", "gardener-resource-manager", *(each.name for each in CRDS.values())}
    - {CRDS["istio"].name}
)
"""Components that belong to the Shoot if the runtime cluster is a self-hosted one."""

_REQUIRED: Final = Selection(
    names=frozenset(
        {
            "garden-system-virtual",
            "shoot-core-gardeneraccess",
            "shoot-core-kube-controller-manager",
            "shoot-core-gardener-resource-manager",
        }
    )
)
_OWN: Final = Selection(names=frozenset({"shoot-core-gardener-resource-manager"}))
_RUNTIME: Final = Selection(resource_class="seed")


_NAMES: Final[Mapping[str, str]] = {
    "virtual-garden-kube-controller-manager": "Destroying Kubernetes Controller Manager Server",
    "gardener-access": "Destroying Gardener virtual garden access resources",
    "kube-apiserver-service": "Destroying Kubernetes API Server service",
    "istio-internal-load-balancing": "Cleaning up Istio internal load balancing ConfigMap",
    "fluent-operator-custom-resources-garden": "Destroying fluent-operator custom resources",
    "gardener-resource-manager": (
        "Destroying and waiting for gardener-resource-manager to be deleted"
    ),
    CRDS["opentelemetry"].name: (
        "Destroying custom resource definition for opentelemetry-operator"
    ),
}
"""Names of tasks that differ from those of the deploying tasks, by component."""


def destroying(component: Component) -> str:
    """Return the name of the task that destroys a component."""
    words = component.deploy.partition(" ")[2].removeprefix("and waiting for ")
    words = words.replace("definitions for", "definition for")
    return _NAMES.get(component.name, f"Destroying {words}")


def deletion(run: Run) -> Graph:
    """Return the flow that deletes everything that belongs to a Garden."""
    graph = Graph(DELETION)
    add_extension_deletion_tasks(graph, run, _tasks(_CONTROL_PLANE))
    for name, after in _AFTER.items():
        early = [BEFORE_GONE] if name in _NEEDED_BY_EXTENSIONS else []
        _add(graph, run, name, [*_tasks(after), *early])
    graph.add(ONLY_REQUIRED, partial(_ensure_none, run, _REQUIRED), after=_tasks(_GARDENER))
    for name in _ACCESS:
        _add(graph, run, name, [ONLY_REQUIRED])
    graph.add(NONE_VIRTUAL, partial(_ensure_none, run, _OWN), after=_tasks(_ACCESS))
    _add(graph, run, _MANAGER, [NONE_VIRTUAL])
    graph.add(
        KUBECONFIG,
        partial(delete_generic_kubeconfig, run.client),
        after=_tasks(_NEEDED_BY_CLIENTS),
    )
    graph.add(DISCONNECT, run.virtual.close, after=_tasks(_NEEDED_BY_CLIENTS))
    graph.add(
        RESET,
        partial(patch_garden_deleted, run.client, run.clock),
        after=[*_tasks(_CONTROL_PLANE), KUBECONFIG, DISCONNECT],
    )
    _add_end(graph, run)
    return graph


def _add_end(graph: Graph, run: Run) -> None:
    """Add the last tasks: the runtime cluster's resource manager, CRDs and credentials."""
    everything = [task.name for task in graph]
    _add(graph, run, "garden-system", everything)
    graph.add(
        NONE,
        partial(_ensure_none, run, _RUNTIME),
        after=_tasks(["garden-system"]),
    )
    _add(graph, run, "gardener-resource-manager", [NONE])
    manager = _tasks(["gardener-resource-manager"])
    for key in DELETED_GROUPS:
        _add(graph, run, CRDS[key].name, manager)
    graph.add(SECRETS, partial(delete_credentials, run.client, run.clock), after=manager)
    graph.add(UNIQUE, partial(delete_unique_objects, run.client), after=manager)


def _add(graph: Graph, run: Run, name: str, after: Iterable[str]) -> None:
    part = component(name)
    graph.add(destroying(part), partial(_destroy, run, part), after=after, skip=_kept(run, part))


async def _destroy(run: Run, part: Component) -> None:
    if part.name == ETCD_DRUID.name:
        await ensure_no_etcds(run.client)
    removable = definitions_of(part.name) or part.leftovers
    # A resource manager is deleted last: it releases the objects of others, and its own.
    for phase in (replace(removable, direct=()), replace(removable, managed=())):
        await run.deployer.remove(phase)
        await run.deployer.wait_removed(phase, part.limit)


async def _ensure_none(run: Run, selection: Selection) -> None:
    if run.current().is_self_hosted:
        selection = replace(selection, names=selection.names | {ETCD_DRUID.name})
    await ensure_none(run.client, selection, run.note)


def _kept(run: Run, part: Component) -> str | None:
    """Return why a component stays."""
    if part.name in _ON_SELF_HOSTED and run.current().is_self_hosted:
        return "it belongs to the Shoot that is the runtime cluster"
    if part.name == CRDS["vpa"].name:
        return part.absent(run.current())
    return None


def _tasks(names: Iterable[str]) -> list[str]:
    return [destroying(component(name)) for name in names]
