"""The graph of all components: every dependency exists, and no task waits for itself (spec 20 §12).

Tasks that belong to no component are listed here.
"""

from collections.abc import Iterable
from graphlib import TopologicalSorter

from pergola.garden.components.catalog import CATALOG

OTHER_TASKS = {
    "Initializing connection to virtual garden cluster",
    "Generating and replicating global observability ingress password",
    "Reconciling main ETCD backup entry",
    "Waiting until extension resources handled before kube-apiserver are ready",
}


def edges() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for component in CATALOG:
        found[component.deploy] = set(component.after)
        if component.wait:
            found[component.wait] = {component.deploy}
    return found


def unknown(names: Iterable[str]) -> set[str]:
    return set(names) - edges().keys()


def test_every_dependency_is_a_task() -> None:
    for name, after in edges().items():
        assert unknown(after) <= OTHER_TASKS, name


def test_no_task_waits_for_itself() -> None:
    list(TopologicalSorter(edges()).static_order())
