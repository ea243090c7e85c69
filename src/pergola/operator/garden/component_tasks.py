"""The tasks of components in a flow, derived from the table of components (design §8).

A component has a task that applies its objects, and one that waits until it is ready, unless the
first one does. A component that the Garden does not have is removed by the same tasks.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from pergola.flow import Graph
from pergola.operator.components.component import Component
from pergola.operator.garden.deploy import Deployer
from pergola.operator.garden.landscape import Landscape

Current = Callable[[], Landscape]
"""Returns the landscape as it is when a task runs: earlier tasks may have added to it."""
Deploy = Callable[[], Awaitable[None]]
"""Deploys one component in a way of its own."""


def add_components(
    graph: Graph,
    components: Iterable[Component],
    current: Current,
    deployer: Deployer,
    own: Mapping[str, Deploy] | None = None,
) -> None:
    """Add the tasks of these components, with their names, order and limits.

    Args:
        own: How some components are deployed, by name, if applying their objects is not enough.
    """
    for component in components:
        apply = (own or {}).get(component.name)
        deploy = partial(_deploy, component, current, deployer, apply)
        graph.add(component.deploy, deploy, after=component.after)
        if component.wait:
            wait = partial(_wait, component, current, deployer)
            graph.add(component.wait, wait, after=[component.deploy])


async def _deploy(
    component: Component, current: Current, deployer: Deployer, apply: Deploy | None
) -> None:
    landscape = current()
    waits = component.waits and not component.wait
    if component.absent(landscape) is not None:
        await deployer.remove(component.leftovers)
    elif apply is not None:
        await apply()
    else:
        rendered = component.objects(landscape)
        await deployer.apply(rendered)
        if waits:
            await deployer.wait(rendered, component.limit)
        return
    if waits:
        await _wait(component, current, deployer)


async def _wait(component: Component, current: Current, deployer: Deployer) -> None:
    landscape = current()
    if component.absent(landscape) is not None:
        await deployer.wait_removed(component.leftovers, component.limit)
    else:
        await deployer.wait(component.objects(landscape), component.limit)
