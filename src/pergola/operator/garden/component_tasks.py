"""The tasks of components in a flow, derived from the table of components (design §8).

A component has a task that applies its objects, and one that waits until it is ready, unless the
first one does. A component that the Garden does not have is removed by the same tasks.
"""

from collections.abc import Callable, Iterable
from functools import partial

from pergola.flow import Graph
from pergola.operator.components.component import Component
from pergola.operator.garden.deploy import Deployer
from pergola.operator.garden.landscape import Landscape

Current = Callable[[], Landscape]
"""Returns the landscape as it is when a task runs: earlier tasks may have added to it."""


def add_components(
    graph: Graph, components: Iterable[Component], current: Current, deployer: Deployer
) -> None:
    """Add the tasks of these components, with their names, order and limits."""
    for component in components:
        deploy = partial(_deploy, component, current, deployer)
        graph.add(component.deploy, deploy, after=component.after)
        if component.wait:
            wait = partial(_wait, component, current, deployer)
            graph.add(component.wait, wait, after=[component.deploy])


async def _deploy(component: Component, current: Current, deployer: Deployer) -> None:
    landscape = current()
    waits = component.waits and not component.wait
    if component.absent(landscape) is not None:
        await deployer.remove(component.leftovers)
        if waits:
            await deployer.wait_removed(component.leftovers, component.limit)
        return
    rendered = component.objects(landscape)
    await deployer.apply(rendered)
    if waits:
        await deployer.wait(rendered, component.limit)


async def _wait(component: Component, current: Current, deployer: Deployer) -> None:
    landscape = current()
    if component.absent(landscape) is not None:
        await deployer.wait_removed(component.leftovers, component.limit)
    else:
        await deployer.wait(component.objects(landscape), component.limit)
