"""The flow that deletes a Garden (spec 20 §18): its tasks and their order."""

import re
from unittest.mock import create_autospec

import pytest

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.flow import Graph
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.operator.reconcile import flow_delete, flows
from pergola.operator.reconcile.extension_resources import deletion as extensions
from pergola.operator.reconcile.flow_delete import DELETION, destroying
from pergola.operator.reconcile.leftovers import Selection
from pergola.operator.run.run import Run
from tests.support.garden import BACKED_UP, COMPLETE, HIGHLY_AVAILABLE, landscape

_MANAGER = "Destroying and waiting for gardener-resource-manager to be deleted"
HASHED = re.compile(r"-[0-9a-f]{8}$")
KEPT = {"shoot-extensions-crds", "pvc-autoscaler-crds"}


def graph(**attributes: object) -> Graph:
    run = create_autospec(Run, instance=True)
    run.current.return_value = landscape(**attributes)
    return flow_delete.deletion(run)


def before(graph: Graph, name: str) -> set[str]:
    """Return the names of all tasks that must precede one."""
    dependencies = graph.dependencies()
    names: set[str] = set()
    remaining = [name]
    while remaining:
        found = {task.name for task in dependencies[remaining.pop()]} - names
        names |= found
        remaining += found
    return names


def test_every_component_that_has_objects_is_destroyed() -> None:
    tasks = graph()
    without_task = {each.name for each in CATALOG if destroying(each) not in tasks}
    objectless = {each.name for each in CATALOG if not each.objects(landscape()).managed}
    assert tasks.name == DELETION
    assert without_task - KEPT == {
        "generic-token-kubeconfig",
        "observability-ingress",
        "kube-apiserver-tls-services",
    }
    assert without_task - KEPT <= objectless


def test_the_control_plane_is_deleted_only_after_gardener() -> None:
    tasks = graph()
    gardener = {
        "Destroying Gardener API Server",
        "Destroying Gardener Controller Manager",
        "Destroying Gardener Admission Controller",
        "Destroying virtual system resources",
    }
    assert gardener <= before(tasks, flow_delete.ONLY_REQUIRED)
    for name in (
        "Destroying Kubernetes Controller Manager Server",
        "Destroying gardener-resource-manager for virtual garden",
        "Destroying Kubernetes API Server",
        "Destroying main and events ETCDs of virtual garden",
    ):
        assert flow_delete.ONLY_REQUIRED in before(tasks, name)


def test_the_virtual_resource_manager_outlives_the_objects_that_it_releases() -> None:
    tasks = graph()
    manager = "Destroying gardener-resource-manager for virtual garden"
    assert flow_delete.NONE_VIRTUAL in before(tasks, manager)
    assert manager in before(tasks, "Destroying Kubernetes API Server")
    assert "Destroying Kubernetes API Server" in before(
        tasks, "Destroying main and events ETCDs of virtual garden"
    )


def test_gardener_outlives_extensions_deleted_before_the_api_server() -> None:
    tasks = graph()
    for name in ("Controller Manager", "Admission Controller", "API Server"):
        assert extensions.BEFORE_GONE in before(tasks, f"Destroying Gardener {name}")


def test_druid_and_the_backup_outlive_the_etcds() -> None:
    tasks = graph()
    etcds = "Destroying main and events ETCDs of virtual garden"
    for name in ("Destroying ETCD Druid", extensions.DESTROY_ENTRY, extensions.DESTROY_DNS):
        assert etcds in before(tasks, name)
    assert extensions.DESTROY_ENTRY in before(tasks, extensions.DESTROY_BUCKET)


def test_the_runtime_resource_manager_is_deleted_once_it_is_no_longer_needed() -> None:
    tasks = graph()
    others = {task.name for task in tasks} - before(tasks, flow_delete.NONE)
    assert flow_delete.NONE in before(tasks, _MANAGER)
    assert all(_MANAGER in before(tasks, name) for name in others - {flow_delete.NONE, _MANAGER})


def test_components_of_a_self_hosted_shoot_are_not_deleted() -> None:
    kept = {task.name for task in graph(is_self_hosted=True) if task.why_skipped()}
    assert {"Destroying ETCD Druid", _MANAGER} <= kept
    assert "Destroying custom resource definition for Istio" not in kept
    assert "Destroying custom resource definition for prometheus-operator" in kept


def test_definitions_of_a_foreign_autoscaler_are_not_deleted() -> None:
    settings = {"verticalPodAutoscaler": {"enabled": False}}
    foreign = {"spec": {"runtimeCluster": {"settings": settings}}}
    run = create_autospec(Run, instance=True)
    run.current.return_value = landscape(foreign)
    tasks = flow_delete.deletion(run)
    assert tasks["Destroying custom resource definition for VPA"].why_skipped()


@pytest.mark.parametrize("component", CATALOG, ids=lambda each: each.name)
def test_the_deletion_covers_every_applied_object(component: Component) -> None:
    for patches in ((COMPLETE,), (COMPLETE, HIGHLY_AVAILABLE, BACKED_UP)):
        site = landscape(*patches)
        if component.absent(site) is not None or component.name.endswith("-crds"):
            continue
        rendered = component.objects(site)
        direct = {identity(obj) for obj in rendered.direct if not is_unnamed(obj)}
        managed = {Key(each.namespace, each.name) for each in rendered.managed}
        assert direct <= set(component.leftovers.direct)
        assert managed <= set(component.leftovers.managed)


def identity(obj: JsonObject) -> Identity:
    return Identity(GroupVersionKind.of(obj), Key.of(obj))


def is_unnamed(obj: JsonObject) -> bool:
    """Return whether an object is deleted by its label, or is a namespace, which stays."""
    return bool(HASHED.search(Key.of(obj).name)) or obj["kind"] == "Namespace"


@pytest.mark.parametrize(
    ("resource", "selected"),
    [
        ({"metadata": {"name": "a", "namespace": "b"}, "spec": {}}, True),
        ({"metadata": {"name": "a", "namespace": "b"}, "spec": {"class": "seed"}}, False),
        ({"metadata": {"name": "a", "namespace": "kube-system"}, "spec": {}}, False),
        ({"metadata": {"name": "own", "namespace": "garden"}, "spec": {}}, False),
    ],
)
def test_managed_resources_outside_kube_system_block_the_deletion(
    resource: JsonObject, *, selected: bool
) -> None:
    assert Selection(names=frozenset({"own"})).selects(resource) is selected


def test_the_reconciliation_flows_have_no_cycle() -> None:
    run = create_autospec(Run, instance=True)
    assert flows.setup(run).order()
    assert flows.reconciliation(run, Key("", "garden")).order()
