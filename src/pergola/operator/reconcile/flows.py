"""The flows of a Garden (spec 20 §11, §12).

Most tasks come from the table of components. The others provide access to the virtual cluster,
deploy parts that depend on its content, rotate credentials, and handle extension resources.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from pergola.api.objects import Key
from pergola.flow import Graph, Retry
from pergola.garden.components import task_names
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.garden.components.gardener_access import GARDENER_ACCESS
from pergola.garden.components.kube_apiserver_exposure.services import API_SERVER_SERVICE
from pergola.operator.reconcile import global_password
from pergola.operator.reconcile.component_tasks import add_components
from pergola.operator.reconcile.extension_resources.tasks import (
    add_extension_tasks,
    add_installation_task,
)
from pergola.operator.reconcile.gardener_info import add_gardener_info_task
from pergola.operator.rotation.access_tokens import RENEW
from pergola.operator.rotation.tasks import add_rotation_tasks
from pergola.operator.run.run import Run

SETUP: Final = "Garden runtime setup"
RECONCILIATION: Final = "Garden reconciliation"


def setup(run: Run, components: Iterable[Component] = CATALOG) -> Graph:
    """Return the flow that prepares the runtime cluster."""
    graph = Graph(SETUP)
    add_components(graph, (each for each in components if each.is_setup), run)
    add_installation_task(graph, run)
    return graph


def reconciliation(run: Run, garden: Key, components: Iterable[Component] = CATALOG) -> Graph:
    """Return the flow that deploys the virtual cluster, Gardener and their observability."""
    graph = Graph(RECONCILIATION)
    add_components(graph, (each for each in components if not each.is_setup), run)
    graph.add(
        task_names.CONNECTION,
        partial(connect, run),
        after=[API_SERVER_SERVICE.ready, GARDENER_ACCESS.ready, RENEW],
        retry=Retry.every(1),
        timeout=30,
    )
    # Gardener's webhooks refuse Secrets of the virtual cluster while its programs roll out.
    graph.add(
        task_names.REPLICATION,
        partial(global_password.replicate, run),
        after=[task_names.CONNECTION],
        retry=Retry.every(5),
        timeout=120,
    )
    add_rotation_tasks(graph, run, garden)
    add_extension_tasks(graph, run)
    add_gardener_info_task(graph, run)
    return graph


async def connect(run: Run) -> None:
    """Connect to the virtual cluster.

    Raises:
        NotConnected: There is no kubeconfig with a token yet.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual_client()
    await virtual.get_raw("/version")
