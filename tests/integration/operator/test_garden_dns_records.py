"""DNSRecords of a garden on a real API server, with running extensions (spec 20 §15.3)."""

import asyncio
from contextlib import suppress
from typing import Final

import pytest

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, name_of
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extension_api.kinds import (
    DNS_RECORD,
)
from pergola.garden.components.kube_apiserver_exposure.address import (
    SERVICE_KEY,
    wait_for_address,
)
from pergola.garden.landscape.errors import NotReady as ObjectNotReady
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.operator.reconcile.extension_resources import (
    dns_tasks,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.operator.reconcile.extension_resources.dns import ORIGIN
from pergola.testing.waiting import PATIENCE, running
from pergola.testing.world import RecordingClient
from tests.support.documented.symptoms import symptom
from tests.support.garden import landscape
from tests.support.garden_extensions import (
    CLOCK,
    LATER,
    fail,
    garden_actuator,
    garden_unit,
    hasty,
    names,
    resource,
)
from tests.support.garden_run import garden_run

ADDRESS: Final = "192.0.2.1"
RECORDS: Final = (
    "api-virtual-garden-local-gardener-cloud-one",
    "gardener-virtual-garden-local-gardener-cloud-one",
    "wildcard-ingress-runtime-garden-local-gardener-cloud-one",
)
API: Final = Key("garden", RECORDS[0])


async def test_the_address_of_the_gateway_is_awaited(
    client: RecordingClient, runtime: Client
) -> None:
    namespace = {"name": SERVICE_KEY.namespace}
    with suppress(AlreadyExists):
        await runtime.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    notes: asyncio.Queue[str] = asyncio.Queue()
    site = await garden_run(client, client, landscape())
    site.note = lambda _, problem: notes.put_nowait(problem)
    waiting = asyncio.create_task(wait_for_address(site, 60))
    assert await notes.get() == "it does not exist"
    await runtime.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE_KEY.name, "namespace": SERVICE_KEY.namespace},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
        }
    )
    assert await notes.get() == "its load balancer has no address"
    with pytest.raises(ObjectNotReady, match=symptom("The load balancer has no address")):
        await wait_for_address(await garden_run(client, client, landscape()), 5)
    status = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.org"}]}}}
    await runtime.patch(SERVICE, SERVICE_KEY, status, subresource="status")
    assert await waiting == "lb.example.org"
    await runtime.delete(SERVICE, SERVICE_KEY)


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


async def test_a_new_address_updates_each_record_and_a_new_record_type_recreates_it(
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
    caller = Caller(client, CLOCK)
    one, two = (garden_actuator(DNS_RECORD, each) for each in ("one", "two"))
    async with running(garden_unit(runtime, one), garden_unit(runtime, two)):
        await dns_tasks.reconcile_dns_records(caller, landscape(dns("one")), ADDRESS)
        old = await names(runtime, DNS_RECORD)
        two.acts["reconcile"] = fail
        client.taken()
        with monkeypatch.context() as patch:
            patch.setattr(dns_tasks, "DNS_RECORD", hasty(DNS_RECORD))
            with pytest.raises(ExtensionError) as failed:
                await dns_tasks.reconcile_dns_records(caller, landscape(dns("two")), ADDRESS)
        assert failed.value.codes == (Code.UNAUTHORIZED,)
        assert str(failed.value).count("the account is closed") == 3
        assert old < await names(runtime, DNS_RECORD)
        assert not any(write.startswith("delete") for write in client.taken())

        two.acts.clear()
        await dns_tasks.reconcile_dns_records(caller, landscape(dns("two")), ADDRESS)
        assert await names(runtime, DNS_RECORD) == {name.replace("-one", "-two") for name in old}


async def test_foreign_records_are_never_touched(client: RecordingClient, runtime: Client) -> None:
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
    assert await names(runtime, DNS_RECORD) == {name_of(obj) for obj in foreign}
    assert not any("garden/without" in write for write in client.taken())


async def test_a_foreign_record_with_the_same_name_is_an_error(
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


async def test_a_status_that_is_older_than_the_request_is_ignored(
    client: RecordingClient, runtime: Client
) -> None:
    noted: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    caller = Caller(client, CLOCK, lambda *note: noted.put_nowait(note))

    async def until_noted(problem: str) -> None:
        awaited = set(RECORDS)
        async with asyncio.timeout(PATIENCE):
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


def dns(*providers: str) -> JsonObject:
    items = [{"name": each, "type": each, "secretRef": {"name": "dns"}} for each in providers]
    return {"spec": {"dns": {"providers": items}}}


def record(name: str, *, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    given = {
        "type": "one",
        "name": "a.example.org",
        "recordType": "A",
        "values": [ADDRESS],
        "secretRef": {"name": "dns"},
        **spec,
    }
    return resource(DNS_RECORD, Key("garden", name), given, labels)


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
