"""Tasks of components on a real API server: order, waits, removal, and one failing task."""

from collections.abc import Sequence

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.flow import FlowFailed, Graph, run
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.operator.reconcile.component_tasks import add_components
from pergola.testing.world import RecordingClient, World, config_map
from tests.support.garden import landscape
from tests.support.garden_run import garden_run


class Parts:
    """Components with one ConfigMap each, in a namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.absent: dict[str, str] = {}
        self.broken: set[str] = set()

    def component(self, name: str, *after: str, limit: float = 60) -> Component:
        return Component(
            name=name,
            deploy=f"Deploying {name}",
            wait=f"Waiting for {name}",
            after=after,
            absent=lambda _: self.absent.get(name),
            removable=None,
            render=lambda _: self.render(name),
            limit=limit,
        )

    def render(self, name: str) -> Rendered:
        obj: JsonObject = config_map(name, self.namespace)
        if name in self.broken:
            obj["apiVersion"] = "example.org/v1"
        managed = Managed(name=name, namespace=self.namespace, objects=(obj,))
        return Rendered(managed=(managed,))


async def flow(components: Sequence[Component], client: Client) -> None:
    graph = Graph("Garden reconciliation")
    add_components(graph, components, await garden_run(client, client, landscape()))
    await run(graph)


async def test_a_component_starts_when_its_dependencies_are_ready(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    await world.start(resource_class="seed")
    parts = Parts(namespace)
    first = parts.component("first")
    second = parts.component("second", first.ready)
    await flow([second, first], recorder)
    created = [write for write in recorder.taken() if write.startswith("create ManagedResource")]
    assert created == [
        f"create ManagedResource {namespace}/first",
        f"create ManagedResource {namespace}/second",
    ]
    assert await recorder.find(CONFIG_MAP, Key(namespace, "second"))

    await flow([second, first], recorder)
    assert recorder.taken() == []


async def test_a_failing_component_stops_only_its_dependents(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    await world.start(resource_class="seed")
    parts = Parts(namespace)
    parts.broken.add("broken")
    broken = parts.component("broken", limit=2)
    dependent = parts.component("dependent", broken.ready)
    independent = parts.component("independent")
    with pytest.raises(FlowFailed) as failed:
        await flow([broken, dependent, independent], recorder)
    assert [failure.task for failure in failed.value.failures] == ["Waiting for broken"]
    assert f"ManagedResource {namespace}/broken is not ready after 2 s" in str(failed.value)
    assert await recorder.find(CONFIG_MAP, Key(namespace, "independent"))
    assert await recorder.find(CONFIG_MAP, Key(namespace, "dependent")) is None


async def test_a_task_renders_once_to_apply_and_wait(
    recorder: RecordingClient, namespace: str
) -> None:
    renders = 0

    def render(_: Landscape) -> Rendered:
        nonlocal renders
        renders += 1
        return Rendered(direct=(config_map("rendered", namespace),))

    await flow([Component(name="one", deploy="Deploying one", render=render)], recorder)
    assert await recorder.find(CONFIG_MAP, Key(namespace, "rendered"))
    assert renders == 1
