"""The tasks of components in a flow, derived from the table of components (design §8).

A component has a task that applies its objects and, unless that task also waits, one that waits
until it is ready. A component that the Garden does not have is removed by the same tasks.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from pergola.flow import Graph
from pergola.garden.components.component import Component, Rendered
from pergola.garden.landscape import Landscape
from pergola.operator.run.deploy import Deployer

Current = Callable[[], Landscape]
"""Returns the current landscape of a running task: earlier tasks may have added to it."""
Deploy = Callable[[], Awaitable[None]]
"""Deploys one component in a special way."""


def add_components(
    graph: Graph,
    components: Iterable[Component],
    current: Current,
    deployer: Deployer,
    own: Mapping[str, Deploy] | None = None,
) -> None:
    """Add the tasks of these components, with their names, order and limits.

    Args:
        own: How to deploy certain components, by name, if applying their objects is not enough.
    """
    for component in components:
        tasks = _Tasks(component, current, deployer, (own or {}).get(component.name))
        graph.add(component.deploy, tasks.deploy, after=component.after)
        if component.wait:
            graph.add(component.wait, tasks.wait, after=[component.deploy])


@dataclass(slots=True)
class _Tasks:
    """The tasks of one component. One waits for the objects that the other has applied."""

    component: Component
    current: Current
    deployer: Deployer
    apply: Deploy | None
    applied: Rendered | None = None

    async def deploy(self) -> None:
        component = self.component
        if component.absent(self.current()) is not None:
            await self.deployer.remove(component.leftovers)
        elif self.apply is not None:
            await self.apply()
        else:
            rendered = component.objects(self.current())
            await self.deployer.apply(rendered)
            self.applied = rendered.outline() if component.waits else None
        if component.waits and not component.wait:
            await self.wait()

    async def wait(self) -> None:
        component, applied = self.component, self.applied
        self.applied = None
        if component.absent(self.current()) is not None:
            await self.deployer.wait_removed(component.leftovers, component.limit)
        else:
            rendered = applied or component.objects(self.current())
            await self.deployer.wait(rendered, component.limit)
