"""The tasks of components in a flow, derived from the table of components (design §8).

A component has a task that deploys it and, unless that task also waits, one that waits until it is
ready. A component that the Garden does not have is removed by the same tasks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pergola.flow import Graph
from pergola.garden.components.component import Component, Rendered
from pergola.operator.run.run import Run


def add_components(graph: Graph, components: Iterable[Component], run: Run) -> None:
    """Add the tasks of these components, with their names, order and limits."""
    for component in components:
        tasks = _Tasks(component, run)
        graph.add(component.deploy, tasks.deploy, after=component.after)
        if component.wait:
            graph.add(component.wait, tasks.wait, after=[component.deploy])


@dataclass(slots=True)
class _Tasks:
    """The tasks of one component. One waits for the objects that the other has applied."""

    component: Component
    run: Run
    applied: Rendered = field(default_factory=Rendered)

    async def deploy(self) -> None:
        component = self.component
        if component.absent(self.run.current()) is not None:
            await self.run.deployer.remove(component.leftovers)
        else:
            self.applied = (await self.run.deploy(component)).outline()
        if component.waits and not component.wait:
            await self.wait()

    async def wait(self) -> None:
        component = self.component
        if component.absent(self.run.current()) is not None:
            await self.run.deployer.wait_removed(component.leftovers, component.limit)
        else:
            await self.run.deployer.wait(self.applied, component.limit)
