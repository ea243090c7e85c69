"""Plans of Gardens that do not exist: extension resources and operations."""

from collections.abc import AsyncIterator

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import EXTENSION, default_garden
from pergola.garden.components import task_names
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.operator.plan import Fate, Field, Plan, Planned, Verb, rehearse
from pergola.operator.reconcile.extension_resources import tasks
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox import Sandbox
from tests.support.garden import BACKED_UP
from tests.support.garden_world import example

WITH_EXTENSIONS: JsonObject = {
    "spec": {
        "dns": {"providers": [{"name": "p", "type": "local", "secretRef": {"name": "dns"}}]},
        "extensions": [{"type": "early"}, {"type": "late"}],
        "runtimeCluster": {"provider": {"region": "local"}},
    }
}
SERVED: JsonObject = {
    "apiVersion": EXTENSION.api_version,
    "kind": EXTENSION.kind,
    "metadata": {"name": "local"},
    "spec": {
        "resources": [
            {"kind": "DNSRecord", "type": "local"},
            {"kind": "BackupBucket", "type": "local"},
            {"kind": "BackupEntry", "type": "local"},
            {
                "kind": "Extension",
                "type": "early",
                "lifecycle": {"reconcile": "BeforeKubeAPIServer"},
            },
            {"kind": "Extension", "type": "late"},
        ]
    },
}


@pytest.fixture
async def observed(garden_sandbox: Sandbox, runtime: Client) -> AsyncIterator[Client]:
    """Yield a client with which plans may only read; an Extension serves everything."""
    await runtime.create(SERVED)
    methods: set[str] = set()

    def observe(method: str, *_: object) -> None:
        methods.add(method)

    async with Client.connect(load(garden_sandbox.kubeconfig), observe=observe) as client:
        yield client
    assert methods == {"GET"}


async def planned(client: Client, *patches: JsonObject) -> Plan:
    garden = example()
    for patch in patches:
        garden = apply_merge_patch(garden, patch)
    of = template(OperatorConfiguration(), images({}), "1.36.0", garden_webhooks)
    return await rehearse(client, default_garden(garden), of)


def created(task: Planned) -> list[str]:
    return [str(each) for each in task.changes if each.verb is Verb.CREATE]


async def test_extension_resources_are_planned_and_the_awaited_ones_are_named(
    observed: Client,
) -> None:
    plan = await planned(observed, BACKED_UP, WITH_EXTENSIONS)
    found = {task.name: task for task in plan.tasks}
    assert "extension-local-garden: it does not exist" in found[tasks.INSTALLED].waits
    assert created(found[tasks.BUCKET]) == ["BackupBucket bucket"]
    assert "BackupBucket bucket" in found[tasks.BUCKET].waits
    assert created(found[tasks.DEPLOY_BEFORE]) == ["Extension garden/garden-early"]
    assert created(found[tasks.DEPLOY_AFTER]) == ["Extension garden/garden-late"]
    assert "Extension garden/garden-late" in found[tasks.AFTER].waits
    assert "istio-ingressgateway" in found[tasks.DNS].waits
    names = (
        tasks.INSTALLED,
        tasks.BUCKET,
        task_names.BACKUP_ENTRY,
        task_names.EXTENSIONS_BEFORE,
        tasks.AFTER,
        tasks.DNS,
    )
    assert {found[name].fate for name in names} == {Fate.RUN}
    assert {each.key for each in plan.missing} == {Key("garden", "backup"), Key("garden", "dns")}


async def test_an_operation_is_planned_with_its_consequences(observed: Client) -> None:
    name = "gardener.cloud/operation"
    operation = {"metadata": {"annotations": {name: "rotate-serviceaccount-key-start"}}}
    plan = await planned(observed, operation)
    assert (plan.problem, plan.rotations) == ("", ("service account key: Preparing",))
    (garden,) = [each for each in plan.changes if str(each) == "Garden local"][:1]
    removed = Field(f"metadata.annotations.{name}", "rotate-serviceaccount-key-start")
    assert removed in garden.fields
