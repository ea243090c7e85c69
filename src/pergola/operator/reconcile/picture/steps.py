"""The tasks of a Garden's flows, before their states are determined.

They come from the graphs that the operator runs, with the objects that each task waits for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.errors import BundleError
from pergola.flow import Graph
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.garden.components.crds import definitions_of
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.operator.reconcile import flow_delete, flows
from pergola.operator.run.build import IDENTITY, Built
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.readiness import Awaited, awaited, awaited_gone, is_awaited
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import Clock
from pergola.secrets_manager import SecretsManager
from pergola.secrets_manager.store import Store

UNRENDERED: Final = (BundleError, OperatorError)
"""Why a component cannot be rendered for a Garden; the operator reports it as an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A task of a flow, and the objects that reveal its state.

    Attributes:
        after: Names of the tasks that precede it, including those of earlier flows.
        skipped: Why the Garden does not have it; empty if it does.
        awaited: The awaited objects; for tasks that only request something, each must exist.
    """

    name: str
    flow: str
    after: tuple[str, ...]
    skipped: str = ""
    awaited: tuple[Awaited, ...] = ()
    component: str = ""


def reconciliation_steps(run: Run, garden: Key) -> list[Step]:
    """Return the tasks of both flows that reconcile a Garden.

    Args:
        run: With credentials, or placeholders for them. Takes about a second of CPU time.
    """
    landscape = run.current()
    parts = dict(_component_parts(CATALOG, landscape))
    setup = _steps(flows.setup(run), parts, ())
    last = tuple(step.name for step in setup)
    return [*setup, *_steps(flows.reconciliation(run, garden), parts, last)]


def deletion_steps(run: Run) -> list[Step]:
    """Return the tasks of the flow that deletes a Garden."""
    return list(_steps(flow_delete.deletion(run), dict(_deletion_parts()), ()))


def dry_run(client: Client, landscape: Landscape, clock: Clock) -> Run:
    """Return a run for building graphs, which is never executed."""
    secrets = SecretsManager(Store(client, NAMESPACE, IDENTITY, {}), clock, {})
    return Run(
        client=client,
        clock=clock,
        deployer=Deployer(client, clock),
        virtual=VirtualCluster(client),
        built=Built(landscape, secrets),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a component that a task handles."""

    component: str
    awaited: tuple[Awaited, ...]
    skipped: str = ""


def _component_parts(
    components: Iterable[Component], landscape: Landscape
) -> Iterator[tuple[str, _Part]]:
    for component in components:
        absent = component.absent(landscape)
        if absent is not None:
            gone = _Part(component.name, _visible(awaited_gone(component.leftovers)), absent)
            yield component.deploy, gone
            yield component.wait, gone
            continue
        ready = _ready(component, landscape)
        exist = tuple(each._replace(problem_of=_absent) for each in ready)
        waits = component.waits and not component.wait
        yield component.deploy, _Part(component.name, ready if waits else exist)
        yield component.wait, _Part(component.name, ready)


def _ready(component: Component, landscape: Landscape) -> tuple[Awaited, ...]:
    """Return the objects to wait for; none for a component that the operator cannot render."""
    try:
        return tuple(awaited(component.objects(landscape)))
    except UNRENDERED:
        return ()


def _deletion_parts() -> Iterator[tuple[str, _Part]]:
    for part in CATALOG:
        removable = definitions_of(part.name) or part.leftovers
        gone = _visible(awaited_gone(removable))
        yield flow_delete.destroying(part), _Part(part.name, gone)


def _steps(graph: Graph, parts: Mapping[str, _Part], earlier: tuple[str, ...]) -> list[Step]:
    """Return the tasks of a graph in order of their dependencies.

    Args:
        earlier: The tasks of the preceding flow.
    """
    dependencies = graph.dependencies()
    found = []
    for task in graph.order():
        after = tuple(each.name for each in dependencies[task.name])
        step = Step(name=task.name, flow=graph.name, after=after or earlier)
        part = parts.get(task.name)
        if part is not None:
            step = replace(
                step, awaited=part.awaited, skipped=part.skipped, component=part.component
            )
        found.append(replace(step, skipped=step.skipped or task.why_skipped() or ""))
    return found


def _visible(awaited: Iterable[Awaited]) -> tuple[Awaited, ...]:
    """Return ManagedResources and objects of kinds with a rule; the others depend on them."""
    return tuple(
        each
        for each in awaited
        if each.identity.gvk == MANAGED_RESOURCE or is_awaited(each.identity.gvk)
    )


def _absent(obj: JsonObject | None) -> str | None:
    return None if obj else "it does not exist"
