"""Tasks of a Garden that are not those of components: their position in the flows (spec 20 §12)."""

from unittest.mock import create_autospec

from pergola.api.objects import Key
from pergola.flow import Graph
from pergola.garden.components import task_names
from pergola.operator.reconcile import flows, gardener_info
from pergola.operator.reconcile.extension_resources import tasks
from pergola.operator.run.run import Run

RUN = create_autospec(Run, instance=True)


def before(graph: Graph, name: str) -> set[str]:
    """Return the names of all tasks that must precede one."""
    names: set[str] = set()
    for task in graph.dependencies()[name]:
        names |= {task.name} | before(graph, task.name)
    return names


def test_extensions_are_awaited_when_the_resource_manager_can_install_them() -> None:
    graph = flows.setup(RUN)
    assert {"Deploying gardener-resource-manager", "Deploying runtime system resources"} <= before(
        graph, tasks.INSTALLED
    )


def test_the_etcds_come_after_the_backup_and_the_api_server_after_early_extensions() -> None:
    graph = flows.reconciliation(RUN, Key("", "garden"))
    etcds = before(graph, "Deploying main and events ETCDs of virtual garden")
    assert {tasks.BUCKET, task_names.BACKUP_ENTRY} <= etcds
    server = before(graph, "Deploying Kubernetes API Server")
    assert {tasks.DEPLOY_BEFORE, task_names.EXTENSIONS_BEFORE} <= server


def test_public_components_need_the_gateway_and_late_extensions_the_virtual_cluster() -> None:
    graph = flows.reconciliation(RUN, Key("", "garden"))
    assert "Deploying Istio" in before(graph, tasks.DNS)
    for name in (tasks.AFTER, tasks.STALE, gardener_info.TASK):
        assert task_names.CONNECTION in before(graph, name)
    assert "Waiting until Gardener API server rolled out" in before(graph, gardener_info.TASK)


def test_requests_to_extensions_are_retried_for_half_a_minute() -> None:
    graph = flows.reconciliation(RUN, Key("", "garden"))
    for name in (tasks.DEPLOY_BEFORE, tasks.DEPLOY_AFTER, tasks.DELETE_STALE):
        task = graph[name]
        assert (task.timeout, task.retry.first_seconds) == (30, 5)
