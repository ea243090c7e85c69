"""Extension resources of a garden on a real API server, with extensions that run (spec 21 §15)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import pytest

from pergola.api.kinds import NAMESPACE, SECRET, SERVICE
from pergola.api.objects import JsonObject, Key, name_of
from pergola.extension_api.caller import NotReady
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extension_api.kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    DNS_RECORD,
    EXTENSION,
    ExtensionKind,
)
from pergola.extensions.actuator import Context, Status
from pergola.flow import Graph, run
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.kube.kubeconfig import load
from pergola.manifests import manifest
from pergola.operator.components.component import SYNC_POINT
from pergola.operator.garden.errors import NotReady as ObjectNotReady
from pergola.operator.garden.errors import OperatorError
from pergola.operator.garden.extension_resources import (
    backup_tasks,
    dns_tasks,
    extension_tasks,
    tasks,
)
from pergola.operator.garden.extension_resources.caller import Caller
from pergola.operator.garden.extension_resources.deletion import add_extension_deletion_tasks
from pergola.operator.garden.extension_resources.dns import ORIGIN
from pergola.operator.garden.extension_resources.extension_tasks import Deployment
from pergola.operator.garden.extension_resources.load_balancer import SERVICE_KEY, wait_for_address
from pergola.operator.garden.extension_resources.tasks import add_extension_tasks
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.extension_site import RecordingActuator, hang
from pergola.testing.garden import BACKED_UP, GARDEN, landscape
from pergola.testing.garden_extensions import (
    KINDS,
    GardenRun,
    garden_actuator,
    garden_unit,
    keep_etcd_secret,
    operator_extension,
    remove_resources,
    secret,
)
from pergola.testing.waiting import running
from pergola.testing.world import RecordingClient


class Later(SystemClock):
    """A clock that is a minute ahead: what succeeded just now did so a while ago."""

    def now(self) -> datetime:
        return super().now() + timedelta(minutes=1)


CLOCK: Final = SystemClock()
LATER: Final = Later()
ADDRESS: Final = "192.0.2.1"
BUCKET: Final = Key("", "bucket")
ENTRY: Final = Key("", f"garden--{GARDEN['metadata']['uid']}")
RECORDS: Final = (
    "api-virtual-garden-local-gardener-cloud-one",
    "gardener-virtual-garden-local-gardener-cloud-one",
    "wildcard-ingress-runtime-garden-local-gardener-cloud-one",
)
API: Final = Key("garden", RECORDS[0])
CONNECTION: Final = "Initializing connection to virtual garden cluster"
SERVED: Final = (operator_extension("local", "BackupBucket/local", "BackupEntry/local"),)


@pytest.fixture
async def client(garden_sandbox: Sandbox) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(garden_sandbox.kubeconfig)) as client:
        client.taken()
        yield client
        await remove_resources(client)
        for found in await client.list(SECRET, "garden"):
            await client.delete(SECRET, Key.of(found))


def dns(*providers: str) -> JsonObject:
    items = [{"name": each, "type": each, "secretRef": {"name": "dns"}} for each in providers]
    return {"spec": {"dns": {"providers": items}}}


def uses(*types: str) -> JsonObject:
    return {"spec": {"extensions": [{"type": each} for each in types]}}


async def failing(_context: Context, _obj: JsonObject) -> Status | None:
    raise ExtensionError("the account is closed", Code.UNAUTHORIZED)


def hasty(kind: ExtensionKind, timeout: float = 20.0) -> ExtensionKind:
    """Return a kind whose errors count soon."""
    return replace(kind, interval=0.1, severe=0.6, timeout=timeout)


async def names(client: RecordingClient, kind: ExtensionKind) -> set[str]:
    return {name_of(obj) for obj in await client.list(kind.gvk)}


# The address of the gateway


async def test_the_address_of_the_gateway_is_awaited(client: RecordingClient) -> None:
    namespace = {"name": SERVICE_KEY.namespace}
    with suppress(AlreadyExists):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    with pytest.raises(ObjectNotReady, match=r"istio-ingressgateway is not ready .* not exist"):
        await wait_for_address(client, 0.3)
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE_KEY.name, "namespace": SERVICE_KEY.namespace},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
        }
    )
    with pytest.raises(ObjectNotReady, match="its load balancer has no address"):
        await wait_for_address(client, 0.3)
    noted = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait_for_address(client, 30, lambda *_: noted.set()))
        await noted.wait()
        status = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.org"}]}}}
        await client.patch(SERVICE, SERVICE_KEY, status, subresource="status")
    assert waiting.result() == "lb.example.org"
    await client.delete(SERVICE, SERVICE_KEY)
    assert await client.find(NAMESPACE, Key("", SERVICE_KEY.namespace))


# DNSRecords


async def test_records_are_created_and_a_second_run_writes_nothing(
    client: RecordingClient, runtime: Client
) -> None:
    site, actuator = landscape(dns("one")), garden_actuator(DNS_RECORD, "one")
    async with running(garden_unit(runtime, actuator)):
        await dns_tasks.reconcile_dns_records(Caller(client, CLOCK), site, ADDRESS)
    assert actuator.taken() == ["reconcile"] * 3
    assert len(client.taken()) == 3
    await dns_tasks.reconcile_dns_records(Caller(client, LATER), site, ADDRESS)
    assert client.taken() == []


async def test_another_address_is_requested_of_each_record_and_another_type_makes_a_new_one(
    client: RecordingClient, runtime: Client
) -> None:
    site, actuator = landscape(dns("one")), garden_actuator(DNS_RECORD, "one")
    async with running(garden_unit(runtime, actuator)):
        for address in (ADDRESS, "192.0.2.2", "lb.example.org"):
            await dns_tasks.reconcile_dns_records(Caller(client, CLOCK), site, address)
            record = await client.get(DNS_RECORD.gvk, API)
            assert record["spec"]["values"] == [address]
    assert record["spec"]["recordType"] == "CNAME"
    assert actuator.calls.count("reconcile") == 9
    assert actuator.calls.count("delete") == 3


async def test_old_records_are_deleted_only_once_those_of_another_provider_are_ready(
    client: RecordingClient, runtime: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, one, two = Caller(client, CLOCK), *actuators(DNS_RECORD, "one", "two")
    async with running(garden_unit(runtime, one), garden_unit(runtime, two)):
        await dns_tasks.reconcile_dns_records(caller, landscape(dns("one")), ADDRESS)
        old = await names(client, DNS_RECORD)
        two.acts["reconcile"] = failing
        client.taken()
        with monkeypatch.context() as patch:
            patch.setattr(dns_tasks, "DNS_RECORD", hasty(DNS_RECORD))
            with pytest.raises(ExtensionError) as failed:
                await dns_tasks.reconcile_dns_records(caller, landscape(dns("two")), ADDRESS)
        assert failed.value.codes == (Code.UNAUTHORIZED,)
        assert str(failed.value).count("the account is closed") == 3
        assert old < await names(client, DNS_RECORD)
        assert not any(write.startswith("delete") for write in client.taken())

        two.acts.clear()
        await dns_tasks.reconcile_dns_records(caller, landscape(dns("two")), ADDRESS)
        assert await names(client, DNS_RECORD) == {name.replace("-one", "-two") for name in old}


async def test_records_of_others_are_never_touched(
    client: RecordingClient, runtime: Client
) -> None:
    caller, actuator = Caller(client, CLOCK), garden_actuator(DNS_RECORD, "one")
    foreign = [
        record("without-class", labels=ORIGIN, spec={}),
        record("without-label", labels={}, spec={"class": "garden"}),
        record("of-a-shoot", labels=ORIGIN, spec={"class": "shoot"}),
    ]
    for obj in foreign:
        await runtime.create(obj)
    async with running(garden_unit(runtime, actuator)):
        await dns_tasks.reconcile_dns_records(caller, landscape(dns("one")), ADDRESS)
        await dns_tasks.destroy_dns_records(caller)
    assert await names(client, DNS_RECORD) == {name_of(obj) for obj in foreign}
    assert not any("garden/without" in write for write in client.taken())


async def test_a_record_of_another_that_has_the_name_is_an_error(
    client: RecordingClient, runtime: Client
) -> None:
    await runtime.create(record(API.name, labels={}, spec={}))
    actuator = garden_actuator(DNS_RECORD, "one")
    async with running(garden_unit(runtime, actuator)):
        with pytest.raises(OperatorError, match=rf"DNSRecord {API} exists, but its spec.class"):
            await dns_tasks.reconcile_dns_records(
                Caller(client, CLOCK), landscape(dns("one")), ADDRESS
            )
    assert not any(str(API) in write for write in client.taken())


async def test_a_status_that_is_older_than_the_request_does_not_count(
    client: RecordingClient, runtime: Client
) -> None:
    noted: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    caller = Caller(client, CLOCK, lambda *note: noted.put_nowait(note))

    async def until_noted(problem: str) -> None:
        awaited = set(RECORDS)
        async with asyncio.timeout(30):
            while awaited:
                subject, text = await noted.get()
                if problem in text:
                    awaited.discard(subject.removeprefix("DNSRecord garden/"))

    async with asyncio.TaskGroup() as group:
        site = landscape(dns("one"))
        task = group.create_task(dns_tasks.reconcile_dns_records(caller, site, ADDRESS))
        await until_noted("waiting for the extension to pick up the request")
        for name in RECORDS:
            await pick_up(runtime, Key("garden", name), done="2020-01-01T00:00:00Z")
        await until_noted("extension is not reconciled yet")
        assert not task.done()
        for name in RECORDS:
            await pick_up(runtime, Key("garden", name), done="2999-01-01T00:00:00Z")


# The backup


async def test_a_bucket_that_is_not_ready_in_time_is_an_error_that_names_it(
    client: RecordingClient, runtime: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BACKUP_BUCKET.timeout == 60
    monkeypatch.setattr(backup_tasks, "BACKUP_BUCKET", hasty(BACKUP_BUCKET, timeout=1.0))
    actuator = garden_actuator(BACKUP_BUCKET, "local")
    actuator.acts["reconcile"] = hang
    async with running(garden_unit(runtime, actuator)):
        with pytest.raises(NotReady) as raised:
            await backup_tasks.reconcile_bucket(Caller(client, CLOCK), landscape(BACKED_UP))
    text = str(raised.value)
    assert text.startswith("Error while waiting for BackupBucket bucket to become ready: ")
    assert "observed generation outdated (0/1)" in text


async def test_an_error_that_lasts_ends_the_wait_before_its_time_with_text_and_codes(
    client: RecordingClient, runtime: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_tasks, "BACKUP_BUCKET", hasty(BACKUP_BUCKET, timeout=600.0))
    caller, actuator = Caller(client, CLOCK), garden_actuator(BACKUP_BUCKET, "local")
    actuator.acts["reconcile"] = failing
    async with running(garden_unit(runtime, actuator)):
        with pytest.raises(NotReady, match=r"BackupBucket bucket .*: the account is closed") as one:
            await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP))
        assert one.value.codes == (Code.UNAUTHORIZED,)
        actuator.acts.clear()
        assert await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP)) == ""


async def test_the_etcd_uses_the_secret_that_the_extension_keeps_for_the_entry(
    client: RecordingClient, runtime: Client
) -> None:
    site, (buckets, entries) = landscape(BACKED_UP), backup_actuators()
    async with running(garden_unit(runtime, buckets), garden_unit(runtime, entries)):
        for clock in (CLOCK, LATER):
            caller = Caller(client, clock)
            assert await backup_tasks.reconcile_bucket(caller, site) == ""
            assert await backup_tasks.reconcile_entry(caller, site) == "etcd-backup"
    assert client.taken() == ["create BackupBucket bucket", f"create BackupEntry {ENTRY}"]


async def test_changed_credentials_are_requested_to_be_used(
    client: RecordingClient, runtime: Client
) -> None:
    buckets, entries = backup_actuators()
    async with running(garden_unit(runtime, buckets), garden_unit(runtime, entries)):
        for value in ("one", "two"):
            content = secret("garden", "backup", key=value)
            site = landscape(BACKED_UP, references={("Secret", Key("garden", "backup")): content})
            await backup_tasks.reconcile_bucket(Caller(client, CLOCK), site)
            await backup_tasks.reconcile_entry(Caller(client, CLOCK), site)
    assert buckets.calls == entries.calls == ["reconcile", "reconcile"]


async def test_an_entry_whose_extension_keeps_no_secret_is_an_error(
    client: RecordingClient, runtime: Client
) -> None:
    site, caller, (buckets, entries) = (
        landscape(BACKED_UP),
        Caller(client, CLOCK),
        backup_actuators(),
    )
    entries.acts.clear()
    async with running(garden_unit(runtime, buckets), garden_unit(runtime, entries)):
        await backup_tasks.reconcile_bucket(caller, site)
        with pytest.raises(OperatorError, match="is ready, but Secret garden/etcd-backup does not"):
            await backup_tasks.reconcile_entry(caller, site)


async def test_entry_and_bucket_are_deleted_and_what_is_gone_is_fine(
    client: RecordingClient, runtime: Client
) -> None:
    site, caller, (buckets, entries) = (
        landscape(BACKED_UP),
        Caller(client, CLOCK),
        backup_actuators(),
    )
    async with running(garden_unit(runtime, buckets), garden_unit(runtime, entries)):
        await backup_tasks.reconcile_bucket(caller, site)
        await backup_tasks.reconcile_entry(caller, site)
        for _ in range(2):
            await backup_tasks.destroy_entry(caller, site)
            await backup_tasks.destroy_bucket(caller, site)
    assert buckets.calls == entries.calls == ["reconcile", "delete"]
    assert await client.find(BACKUP_ENTRY.gvk, ENTRY) is None


async def test_a_bucket_of_a_seed_that_has_the_name_is_not_taken_over_and_not_deleted(
    client: RecordingClient, runtime: Client
) -> None:
    spec = {"type": "local", "region": "r", "class": "seed", "secretRef": {"name": "s"}}
    await runtime.create(resource(BACKUP_BUCKET, BUCKET, spec))
    caller = Caller(client, CLOCK)
    with pytest.raises(OperatorError, match=r"BackupBucket bucket exists, but its spec.class"):
        await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP))
    await backup_tasks.destroy_bucket(caller, landscape(BACKED_UP))
    assert client.taken() == []


async def test_without_the_kinds_deletion_is_done(
    client: RecordingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    unserved = ExtensionKind(kind="Unheardof", plural="unheardofs")
    for module, name in (
        (backup_tasks, "BACKUP_BUCKET"),
        (dns_tasks, "DNS_RECORD"),
        (extension_tasks, "EXTENSION"),
    ):
        monkeypatch.setattr(module, name, unserved)
    caller = Caller(client, CLOCK)
    await backup_tasks.destroy_bucket(caller, landscape(BACKED_UP))
    await dns_tasks.destroy_dns_records(caller)
    deletion = extension_tasks.everything(caller)
    await deletion.delete()
    await deletion.wait()
    assert client.taken() == []


# Extensions


async def test_extensions_are_deployed_and_awaited_before_or_after_the_api_server(
    client: RecordingClient, runtime: Client
) -> None:
    early = operator_extension(
        "a", "Extension/early", lifecycle={"reconcile": "BeforeKubeAPIServer"}
    )
    site = landscape(uses("early", "usual"), extensions=(early,))
    before, after = actuators(EXTENSION, "early", "usual")
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


async def test_stale_extensions_are_deleted_and_those_of_others_are_not(
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
    assert await names(client, EXTENSION) == {"garden-usual", "other", "none"}


# In a flow


async def test_the_flow_hands_the_secret_to_the_etcd_and_the_deletion_leaves_nothing(
    client: RecordingClient, runtime: Client
) -> None:
    site = GardenRun(client, landscape(BACKED_UP, uses("usual"), extensions=SERVED))
    graph = flow("Garden reconciliation", *SYNC_POINT, CONNECTION)
    add_extension_tasks(graph, site)
    buckets, entries = backup_actuators()
    usual = garden_actuator(EXTENSION, "usual")
    async with running(*(garden_unit(runtime, each) for each in (buckets, entries, usual))):
        result = await run(graph)
        assert site.landscape.backup_secret == "etcd-backup"
        assert {name: ended.why for name, ended in result.tasks.items() if ended.why} == {
            tasks.DNS: "spec.dns is not set",
            tasks.DEPLOY_BEFORE: "no extension is handled before the kube-apiserver",
            tasks.BEFORE: "no extension is handled before the kube-apiserver",
        }
        graph = flow("Garden deletion", "control plane")
        add_extension_deletion_tasks(graph, site, ["control plane"])
        await run(graph)
    for kind in KINDS:
        assert await names(client, kind) == set()


async def test_without_the_gate_the_flow_hands_the_generated_secret_to_the_etcd(
    client: RecordingClient, runtime: Client
) -> None:
    gates = {"BackupEntryForGarden": False}
    site = GardenRun(client, landscape(BACKED_UP, extensions=SERVED, feature_gates=gates))
    graph = flow("Garden reconciliation", *SYNC_POINT, CONNECTION)
    add_extension_tasks(graph, site)
    buckets, _ = backup_actuators()

    async def generate(_context: Context, _obj: JsonObject) -> Status | None:
        return {"generatedSecretRef": {"name": "generated", "namespace": "garden"}}

    buckets.acts["reconcile"] = generate
    async with running(garden_unit(runtime, buckets)):
        await run(graph)
    assert site.landscape.backup_secret == "generated"
    assert await names(client, BACKUP_ENTRY) == set()


async def test_without_a_backup_and_dns_nothing_is_written(client: RecordingClient) -> None:
    site = GardenRun(client, landscape())
    graph = flow("Garden reconciliation", *SYNC_POINT, CONNECTION)
    add_extension_tasks(graph, site)
    await run(graph)
    assert client.taken() == []
    assert site.landscape.backup_secret == ""


def actuators(kind: ExtensionKind, *types: str) -> list[RecordingActuator]:
    return [garden_actuator(kind, each) for each in types]


def backup_actuators() -> tuple[RecordingActuator, RecordingActuator]:
    buckets, entries = (garden_actuator(kind, "local") for kind in (BACKUP_BUCKET, BACKUP_ENTRY))
    entries.acts["reconcile"] = keep_etcd_secret
    return buckets, entries


def record(name: str, *, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    given = {
        "type": "one",
        "name": "a.example.org",
        "recordType": "A",
        "values": [ADDRESS],
        "secretRef": {"name": "dns"},
        **spec,
    }
    obj = resource(DNS_RECORD, Key("garden", name), given)
    obj["metadata"]["labels"] = dict(labels)
    return obj


def resource(kind: ExtensionKind, key: Key, spec: JsonObject) -> JsonObject:
    return manifest(kind.gvk.api_version, kind.kind, key.name, namespace=key.namespace, spec=spec)


def flow(name: str, *others: str) -> Graph:
    """Return a graph with tasks that are not about extension resources."""
    graph = Graph(name)
    for other in others:
        graph.add(other, nothing)
    return graph


async def nothing() -> None:
    """Succeed."""


async def pick_up(client: Client, key: Key, *, done: str) -> None:
    """Report a success at a time, as an extension does."""
    live = await client.get(DNS_RECORD.gvk, key)
    operation = {
        "type": "Reconcile",
        "state": "Succeeded",
        "progress": 100,
        "description": "",
        "lastUpdateTime": done,
    }
    status = {"observedGeneration": live["metadata"]["generation"], "lastOperation": operation}
    await client.patch(DNS_RECORD.gvk, key, {"status": status}, subresource="status")
    annotations = {"gardener.cloud/operation": None}
    await client.patch(DNS_RECORD.gvk, key, {"metadata": {"annotations": annotations}})
