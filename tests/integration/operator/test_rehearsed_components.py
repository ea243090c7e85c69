"""A plan contains exactly the writes of the run: tasks of components on a real API server."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import Identity, JsonObject, Key
from pergola.flow import Graph, run
from pergola.garden.components.component import (
    Clusters,
    Component,
    Learn,
    Managed,
    Removable,
    Rendered,
    learn_nothing,
)
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.plan import Fate, Field, Planned, Verb
from pergola.operator.plan.client import Rehearsal, WouldWait
from pergola.operator.plan.doubles import RehearsedVirtualCluster
from pergola.operator.plan.stage import Stage
from pergola.operator.reconcile.component_tasks import add_components
from pergola.operator.run.build import Built, open_secrets
from pergola.operator.run.run import Run
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.world import RecordingClient, config_map
from tests.support.garden import landscape
from tests.support.garden_run import garden_run


@dataclass
class Part:
    """A component with a direct ConfigMap, and a ManagedResource with a ConfigMap and a Secret."""

    namespace: str
    text: str = "1"
    password: str = "MQ=="
    absent: str | None = None
    broken: bool = False
    methods: set[str] = field(default_factory=set)
    learn: Learn = learn_nothing

    @property
    def component(self) -> Component:
        return Component(
            name="part",
            deploy="Deploying part",
            waits=False,
            learn=self.learn,
            absent=lambda _: self.absent,
            removable=Removable(
                managed=(Key(self.namespace, "part"),),
                direct=(Identity(CONFIG_MAP, Key(self.namespace, "direct")),),
            ),
            render=lambda _: self.render(),
        )

    def render(self) -> Rendered:
        if self.broken:
            raise OperatorError("the Garden lacks something")
        kept = {**config_map("kept", self.namespace), "data": {"text": self.text}}
        data = {"password": self.password}
        secret = {**config_map("secret", self.namespace), "kind": "Secret", "data": data}
        direct = {**config_map("direct", self.namespace), "data": {"text": self.text}}
        managed = Managed(name="part", namespace=self.namespace, objects=(kept, secret))
        return Rendered(managed=(managed,), direct=(direct,))

    def graph(self, site: Run) -> Graph:
        graph = Graph("Garden reconciliation")
        add_components(graph, [self.component], site)
        return graph

    async def deploy(self, client: RecordingClient) -> list[str]:
        """Run the task, and return the writes."""
        client.taken()
        await run(self.graph(await garden_run(client, client, landscape())))
        return client.taken()

    async def planned(self, client: Client) -> Planned:
        rehearsal = Rehearsal(client)
        virtual = RehearsedVirtualCluster(rehearsal)
        stage = Stage(rehearsal, virtual, [self.component])
        site, clock = landscape(), SystemClock()
        built = Built(site, await open_secrets(rehearsal, site, clock))
        context = Run(
            client=rehearsal,
            clock=clock,
            deployer=stage.deployer,
            virtual=virtual,
            built=built,
            note=stage.note,
        )
        graph = self.graph(context)
        return await stage.planned(context, graph, graph["Deploying part"])


@pytest.fixture
def part(namespace: str) -> Part:
    return Part(namespace)


@pytest.fixture
async def observed(sandbox: Sandbox, part: Part) -> AsyncIterator[Client]:
    """Yield a client whose request methods the part records."""

    def observe(method: str, *_: object) -> None:
        part.methods.add(method)

    async with Client.connect(load(sandbox.kubeconfig), observe=observe) as client:
        yield client


async def test_missing_objects_are_planned_but_not_created(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    planned = await part.planned(observed)
    assert part.methods == {"GET"}
    assert planned.fate is Fate.RUN
    assert {(each.verb, str(each), each.managed) for each in planned.changes} == {
        (Verb.CREATE, f"ConfigMap {part.namespace}/direct", ""),
        (Verb.CREATE, f"ManagedResource {part.namespace}/part", ""),
        (Verb.CREATE, f"ConfigMap {part.namespace}/kept", "part"),
        (Verb.CREATE, f"Secret {part.namespace}/secret", "part"),
    }
    assert await recorder.find(CONFIG_MAP, Key(part.namespace, "direct")) is None


async def test_a_plan_without_changes_is_a_run_without_writes(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    await part.deploy(recorder)
    planned = await part.planned(observed)
    assert (planned.changes, planned.unchanged) == ((), 3)
    assert await part.deploy(recorder) == []


async def test_changed_fields_are_planned_even_inside_managed_resources(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    await part.deploy(recorder)
    part.text = "2"
    planned = await part.planned(observed)
    changed = (Field("data.text", "1", "2"),)
    assert {(str(each), each.managed): each.fields for each in planned.changes} == {
        (f"ConfigMap {part.namespace}/direct", ""): changed,
        (f"ConfigMap {part.namespace}/kept", "part"): changed,
    }
    assert planned.unchanged == 1
    writes = await part.deploy(recorder)
    assert f"apply ConfigMap {part.namespace}/direct" in writes
    assert f"update ManagedResource {part.namespace}/part" in writes


async def test_a_plan_does_not_contain_values_of_secrets(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    await part.deploy(recorder)
    part.password = "Mg=="
    (change,) = (await part.planned(observed)).changes
    assert str(change) == f"Secret {part.namespace}/secret"
    assert change.fields == (Field("data", keys=("password",)),)
    assert "Mg==" not in str(change.to_json())


async def test_objects_of_a_removed_component_are_planned_to_be_deleted(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    await part.deploy(recorder)
    part.absent = "spec.part is not set"
    planned = await part.planned(observed)
    assert (planned.fate, planned.why) == (Fate.REMOVE, "spec.part is not set")
    assert {(each.verb, str(each)) for each in planned.changes} == {
        (Verb.DELETE, f"ConfigMap {part.namespace}/direct"),
        (Verb.DELETE, f"ManagedResource {part.namespace}/part"),
        (Verb.DELETE, f"ConfigMap {part.namespace}/kept"),
        (Verb.DELETE, f"Secret {part.namespace}/secret"),
    }
    assert part.methods == {"GET"}


async def test_a_removed_component_without_objects_is_skipped(part: Part, observed: Client) -> None:
    part.absent = "spec.part is not set"
    planned = await part.planned(observed)
    assert (planned.fate, planned.changes) == (Fate.SKIP, ())


async def test_a_component_that_cannot_be_rendered_gives_the_reason(
    part: Part, observed: Client
) -> None:
    part.broken = True
    planned = await part.planned(observed)
    assert (planned.fate, planned.why) == (Fate.UNKNOWN, "the Garden lacks something")


async def test_a_component_that_would_wait_for_what_it_learns_is_planned_without(
    part: Part, observed: Client
) -> None:
    async def wait(landscape: Landscape, clusters: Clusters) -> Landscape | None:
        raise WouldWait("for a Service")

    part.learn = wait
    planned = await part.planned(observed)
    assert planned.fate is Fate.RUN
    assert f"ConfigMap {part.namespace}/direct" in {str(each) for each in planned.changes}


async def test_an_object_that_another_manager_owns_is_taken_over(
    part: Part, observed: Client, recorder: RecordingClient
) -> None:
    (direct,) = part.render().direct
    await recorder.create(direct)
    changes = {str(each): each for each in (await part.planned(observed)).changes}
    found = changes[f"ConfigMap {part.namespace}/direct"]
    assert (found.verb, [each.path for each in found.fields]) == (
        Verb.CHANGE,
        ["metadata.managedFields"],
    )
    writes = await part.deploy(recorder)
    assert f"apply ConfigMap {part.namespace}/direct" in writes


async def test_a_rehearsal_reads_its_own_writes(observed: Client, namespace: str) -> None:
    rehearsal = Rehearsal(observed)
    key = Key(namespace, "new")
    created: JsonObject = {**config_map("new", namespace), "kind": "Secret"}
    created["metadata"]["labels"] = {"a": "b"}
    await rehearsal.create(created)
    await rehearsal.patch(SECRET, key, {"data": {"x": "MQ=="}})
    assert (await rehearsal.get(SECRET, key))["data"] == {"x": "MQ=="}
    listed = await rehearsal.list(SECRET, namespace, labels="a=b")
    assert [each["metadata"]["name"] for each in listed] == ["new"]
    assert await rehearsal.list(SECRET, namespace, labels="a=c") == []

    await rehearsal.delete(SECRET, key)
    assert await rehearsal.find(SECRET, key) is None
    assert rehearsal.taken() == []
    assert await observed.find(SECRET, key) is None
