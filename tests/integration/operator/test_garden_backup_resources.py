"""BackupBucket and BackupEntry on a real API server, with running extensions (spec 20 §15.1)."""

import asyncio
from typing import Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.extension_api.caller import NotReady
from pergola.extension_api.errors import Code
from pergola.extension_api.kinds import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    ExtensionKind,
)
from pergola.extensions.actuator import Context, Status
from pergola.garden.components.etcds.backups import learn
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.operator.reconcile.extension_resources import (
    backup_tasks,
    dns_tasks,
    extension_tasks,
)
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.testing.extension_site import hang
from pergola.testing.waiting import running, until
from pergola.testing.world import RecordingClient
from tests.support.documented.symptoms import symptom
from tests.support.garden import BACKED_UP, GARDEN, landscape
from tests.support.garden_extensions import (
    CLOCK,
    LATER,
    backup_actuators,
    fail,
    garden_actuator,
    garden_unit,
    hasty,
    operator_extension,
    resource,
)
from tests.support.garden_run import garden_run
from tests.support.objects import secret

BUCKET: Final = Key("", "bucket")
ENTRY: Final = Key("", f"garden--{GARDEN['metadata']['uid']}")


async def test_a_bucket_that_is_not_ready_in_time_is_an_error_with_its_name(
    client: RecordingClient, runtime: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BACKUP_BUCKET.timeout == 60
    monkeypatch.setattr(backup_tasks, "BACKUP_BUCKET", hasty(BACKUP_BUCKET, timeout=20.0))
    actuator = garden_actuator(BACKUP_BUCKET, "local")
    actuator.acts["reconcile"] = hang
    async with running(garden_unit(runtime, actuator)):
        with pytest.raises(NotReady) as raised:
            await backup_tasks.reconcile_bucket(Caller(client, CLOCK), landscape(BACKED_UP))
    text = str(raised.value)
    assert text.startswith("Error while waiting for BackupBucket bucket to become ready: ")
    assert "observed generation outdated (0/1)" in text


async def test_a_persistent_error_ends_the_wait_early_with_text_and_codes(
    client: RecordingClient, runtime: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, actuator = Caller(client, CLOCK), garden_actuator(BACKUP_BUCKET, "local")
    actuator.acts["reconcile"] = fail
    async with running(garden_unit(runtime, actuator)):
        with monkeypatch.context() as patch:
            patch.setattr(backup_tasks, "BACKUP_BUCKET", hasty(BACKUP_BUCKET, timeout=600.0))
            with pytest.raises(
                NotReady, match=r"BackupBucket bucket .*: the account is clo"
            ) as one:
                await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP))
        assert one.value.codes == (Code.UNAUTHORIZED,)
        actuator.acts.clear()
        await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP))


async def test_a_transient_error_does_not_end_the_wait(
    client: RecordingClient, runtime: Client
) -> None:
    actuator = garden_actuator(BACKUP_BUCKET, "local")

    async def fail_once(context: Context, obj: JsonObject) -> Status | None:
        return await fail(context, obj) if len(actuator.calls) == 1 else None

    actuator.acts["reconcile"] = fail_once
    async with running(garden_unit(runtime, actuator)):
        await backup_tasks.reconcile_bucket(Caller(client, CLOCK), landscape(BACKED_UP))
    assert actuator.calls == ["reconcile", "reconcile"]
    assert client.taken() == ["create BackupBucket bucket"]


async def test_a_run_after_an_interrupted_one_waits_for_the_same_request(
    client: RecordingClient, runtime: Client
) -> None:
    caller, actuator = Caller(client, CLOCK), garden_actuator(BACKUP_BUCKET, "local")
    interrupted = asyncio.create_task(backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP)))
    await until(runtime, BACKUP_BUCKET.gvk, BUCKET, lambda _: True)
    interrupted.cancel()
    await asyncio.wait([interrupted])
    waiting = asyncio.Event()
    second = Caller(client, CLOCK, lambda *_: waiting.set())
    again = asyncio.create_task(backup_tasks.reconcile_bucket(second, landscape(BACKED_UP)))
    await waiting.wait()
    async with running(garden_unit(runtime, actuator)):
        await again
    assert actuator.calls == ["reconcile"]
    assert client.taken() == ["create BackupBucket bucket"]


async def test_the_etcd_uses_the_secret_that_the_extension_maintains_for_the_entry(
    client: RecordingClient, runtime: Client
) -> None:
    served = operator_extension("local", "BackupBucket/local", "BackupEntry/local")
    site, (buckets, entries) = landscape(BACKED_UP, extensions=(served,)), backup_actuators()
    async with running(garden_unit(runtime, buckets), garden_unit(runtime, entries)):
        for clock in (CLOCK, LATER):
            caller = Caller(client, clock)
            await backup_tasks.reconcile_bucket(caller, site)
            await backup_tasks.reconcile_entry(caller, site)
            run = await garden_run(client, client, site)
            assert (await learn(site, run)).backup_secret == "etcd-backup"
    assert client.taken() == ["create BackupBucket bucket", f"create BackupEntry {ENTRY}"]


async def test_changed_credentials_cause_a_request_to_use_them(
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


async def test_an_entry_without_a_secret_of_the_extension_is_an_error(
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


async def test_entry_and_bucket_are_deleted_and_may_already_be_gone(
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


async def test_a_bucket_of_a_seed_with_the_same_name_is_neither_adopted_nor_deleted(
    client: RecordingClient, runtime: Client
) -> None:
    spec = {"type": "local", "region": "r", "class": "seed", "secretRef": {"name": "s"}}
    await runtime.create(resource(BACKUP_BUCKET, BUCKET, spec))
    caller = Caller(client, CLOCK)
    with pytest.raises(OperatorError, match=symptom("An object of this name is taken")):
        await backup_tasks.reconcile_bucket(caller, landscape(BACKED_UP))
    await backup_tasks.destroy_bucket(caller, landscape(BACKED_UP))
    assert client.taken() == []


async def test_without_the_kinds_the_deletion_is_complete(
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
