"""Extensions of a garden, and all extension resources in its flows (spec 21 §15.3)."""

import asyncio
from typing import Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.extension_api.kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    DNS_RECORD,
    EXTENSION,
    ExtensionKind,
)
from pergola.extensions.actuator import Context, Status
from pergola.flow import Graph, run
from pergola.garden.components import task_names
from pergola.garden.components.etcds.backups import learn
from pergola.kube.client import Client
from pergola.operator.reconcile.extension_resources import (
    extension_tasks,
    tasks,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.operator.reconcile.extension_resources.deletion import add_extension_deletion_tasks
from pergola.operator.reconcile.extension_resources.extension_tasks import Deployment
from pergola.operator.reconcile.extension_resources.tasks import add_extension_tasks
from pergola.operator.reconcile.own_objects import OwnObjects
from pergola.operator.run.run import Run
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import PATIENCE, running
from pergola.testing.world import RecordingClient
from tests.support.garden import BACKED_UP, landscape
from tests.support.garden_extensions import (
    CLOCK,
    KINDS,
    LATER,
    backup_actuators,
    garden_actuator,
    garden_unit,
    names,
    operator_extension,
    resource,
)
from tests.support.garden_run import garden_run

SERVED: Final = (operator_extension("local", "BackupBucket/local", "BackupEntry/local"),)
SECRET_REFERENCE: Final = {"name": "any", "namespace": "garden"}
SPECS: Final[dict[ExtensionKind, JsonObject]] = {
    BACKUP_BUCKET: {"region": "a", "secretRef": SECRET_REFERENCE},
    BACKUP_ENTRY: {"region": "a", "secretRef": SECRET_REFERENCE, "bucketName": "b"},
    DNS_RECORD: {
        "name": "api.example.org",
        "recordType": "A",
        "values": ["192.0.2.1"],
        "secretRef": SECRET_REFERENCE,
    },
    EXTENSION: {},
}


async def test_extensions_are_deployed_and_awaited_before_or_after_the_api_server(
    client: RecordingClient, runtime: Client
) -> None:
    early = operator_extension(
        "a", "Extension/early", lifecycle={"reconcile": "BeforeKubeAPIServer"}
    )
    site = landscape(uses("early", "usual"), extensions=(early,))
    before, after = (garden_actuator(EXTENSION, each) for each in ("early", "usual"))
    async with running(garden_unit(runtime, before), garden_unit(runtime, after)):
        for clock, is_before in ((CLOCK, True), (CLOCK, False), (LATER, True), (LATER, False)):
            caller = Caller(client, clock)
            deployment = Deployment(caller, lambda: site, is_before=is_before)
            await deployment.deploy()
            await deployment.wait()
            if clock is CLOCK:
                expected = "early" if is_before else "usual"
                assert client.taken() == [f"create Extension garden/garden-{expected}"]
    assert client.taken() == []
    assert before.calls == after.calls == ["reconcile"]


async def test_stale_extensions_are_deleted_and_foreign_ones_are_not(
    client: RecordingClient, runtime: Client
) -> None:
    for name, extension_class in (("garden-gone", "garden"), ("other", "shoot"), ("none", None)):
        spec = {"type": "usual"} | ({"class": extension_class} if extension_class else {})
        await runtime.create(resource(EXTENSION, Key("garden", name), spec))
    site, caller = landscape(uses("usual")), Caller(client, CLOCK)
    async with running(garden_unit(runtime, garden_actuator(EXTENSION, "usual"))):
        deployment = Deployment(caller, lambda: site, is_before=False)
        await deployment.deploy()
        await deployment.wait()
        deletion = extension_tasks.stale(caller, lambda: site)
        await deletion.delete()
        await deletion.wait()
    assert await names(runtime, EXTENSION) == {"garden-usual", "other", "none"}


async def test_the_flow_gives_the_secret_to_the_etcd_and_the_deletion_leaves_nothing(
    client: RecordingClient, runtime: Client
) -> None:
    site = await garden_run(client, client, landscape(BACKED_UP, uses("usual"), extensions=SERVED))
    graph = flow("Garden reconciliation", *task_names.SYNC_POINT, task_names.CONNECTION)
    add_extension_tasks(graph, site)
    buckets, entries = backup_actuators()
    usual = garden_actuator(EXTENSION, "usual")
    async with running(*(garden_unit(runtime, each) for each in (buckets, entries, usual))):
        result = await run(graph)
        assert await backup_secret(site) == "etcd-backup"
        assert {name: ended.why for name, ended in result.tasks.items() if ended.why} == {
            tasks.DNS: "spec.dns is not set",
            tasks.DEPLOY_BEFORE: "no extension is handled before the kube-apiserver",
            task_names.EXTENSIONS_BEFORE: "no extension is handled before the kube-apiserver",
        }
        graph = flow("Garden deletion", "control plane")
        add_extension_deletion_tasks(graph, site, ["control plane"])
        await run(graph)
    for kind in KINDS:
        assert await names(runtime, kind) == set()


async def test_without_the_gate_the_flow_gives_the_generated_secret_to_the_etcd(
    client: RecordingClient, runtime: Client
) -> None:
    gates = {"BackupEntryForGarden": False}
    site = await garden_run(
        client, client, landscape(BACKED_UP, extensions=SERVED, feature_gates=gates)
    )
    graph = flow("Garden reconciliation", *task_names.SYNC_POINT, task_names.CONNECTION)
    add_extension_tasks(graph, site)
    buckets, _ = backup_actuators()

    async def generate(_context: Context, _obj: JsonObject) -> Status | None:
        return {"generatedSecretRef": {"name": "generated", "namespace": "garden"}}

    buckets.acts["reconcile"] = generate
    async with running(garden_unit(runtime, buckets)):
        await run(graph)
    assert await backup_secret(site) == "generated"
    assert await names(runtime, BACKUP_ENTRY) == set()


async def test_without_a_backup_and_dns_nothing_is_written(client: RecordingClient) -> None:
    site = await garden_run(client, client, landscape())
    graph = flow("Garden reconciliation", *task_names.SYNC_POINT, task_names.CONNECTION)
    add_extension_tasks(graph, site)
    await run(graph)
    assert client.taken() == []
    assert await backup_secret(site) == ""


async def backup_secret(site: Run) -> str:
    """Return the Secret that the etcds learn."""
    learnt = await learn(site.current(), site)
    return learnt.backup_secret


def uses(*types: str) -> JsonObject:
    return {"spec": {"extensions": [{"type": each} for each in types]}}


def flow(name: str, *others: str) -> Graph:
    """Return a graph with all other tasks."""
    graph = Graph(name)
    for other in others:
        graph.add(other, nothing)
    return graph


async def nothing() -> None:
    """Succeed."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
async def test_a_resource_of_the_garden_that_others_delete_is_reported(
    runtime: Client, kind: ExtensionKind
) -> None:
    reports: asyncio.Queue[None] = asyncio.Queue()
    own = OwnObjects(runtime, [])
    own.vanished.subscribe(reports.put_nowait)
    namespace = "" if kind is BACKUP_BUCKET else "garden"
    ours, others = Key(namespace, "ours"), Key(namespace, "others")
    for key, of_class in ((ours, "garden"), (others, "seed")):
        await runtime.create(resource(kind, key, SPECS[kind] | {"type": "x", "class": of_class}))
    async with running(Unit(tasks=[own.run])):
        own.expect([])
        [cache] = [each for each in own.caches if each.gvk == kind.gvk]
        await cache.synced()
        await runtime.delete(kind.gvk, others)
        await runtime.delete(kind.gvk, ours)
        async with asyncio.timeout(PATIENCE):
            await reports.get()
    assert reports.empty()
