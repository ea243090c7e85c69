"""Conditions that the original does not have, on a real API server."""

from datetime import UTC, datetime, timedelta

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.extension_api.kinds import DNS_RECORD
from pergola.kube.client import Client
from pergola.operator.care import Settings, garden_care
from pergola.operator.care.extras import (
    BACKUPS_HEALTHY,
    CERTIFICATES_VALID,
    CREDENTIALS_ROTATED,
    DNS_RECORDS_HEALTHY,
    EXTRAS,
)
from pergola.operator.copies import Copies
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, until
from pergola.testing.world import RecordingClient
from tests.support.care_site import (
    CareSite,
    SwitchedCluster,
    last_operation,
    manifest,
    statuses_of,
    template,
    with_copies,
)
from tests.support.garden_states import is_healthy

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
QUICK = Settings(sync_period=timedelta(seconds=1))
KEY = Key("garden", "ca-0123abcd")


def unit(client: Client, clock: FakeClock) -> Unit:
    copies = Copies(client)
    virtual, metrics = SwitchedCluster(), Metrics()
    care = garden_care(copies, virtual.probe, template, QUICK, metrics=metrics, clock=clock)
    return with_copies(copies, care)


def credential(until: datetime) -> JsonObject:
    labels = {
        "managed-by": "secrets-manager",
        "manager-identity": "gardener-operator",
        "name": "ca",
        "issued-at-time": str(int((until - timedelta(days=30)).timestamp())),
        "valid-until-time": str(int(until.timestamp())),
    }
    return manifest(SECRET, KEY, labels)


async def put_record(client: Client, state: str, of_class: str = "garden") -> None:
    key = Key("garden", of_class)
    spec = {
        "class": of_class,
        "name": f"{of_class}.example.org",
        "recordType": "A",
        "secretRef": {"name": "dns", "namespace": "garden"},
        "type": "test",
        "values": ["192.0.2.1"],
    }
    operation = {**last_operation(state), "progress": 50}
    status = {"observedGeneration": 1, "lastOperation": operation}
    await client.create({**manifest(DNS_RECORD.gvk, key, {}), "spec": spec})
    await client.patch(DNS_RECORD.gvk, key, {"status": status}, subresource="status")


async def test_a_garden_with_nothing_to_check_has_no_extra_conditions(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    async with running(unit(writer, FakeClock(NOW))):
        garden = await care_site.until_healthy()
    assert not statuses_of(garden).keys() & set(EXTRAS)


async def test_an_expiring_credential_is_reported_in_time(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    clock = FakeClock(NOW)
    await care_site.client.create(credential(NOW + timedelta(days=3, minutes=30)))
    try:
        async with running(unit(writer, clock)):
            await care_site.until(CERTIFICATES_VALID, "True", "CertificatesValid")
            clock.set(NOW + timedelta(hours=1))
            found = await care_site.until(CERTIFICATES_VALID, "False", "CertificatesExpiring")
            await care_site.until(CREDENTIALS_ROTATED, "True", "CredentialsRecent")
            clock.set(NOW + timedelta(days=70))
            await care_site.until(CREDENTIALS_ROTATED, "False", "CredentialsOld")
    finally:
        await care_site.client.delete(SECRET, KEY)
    assert found["message"] == (
        "Secret garden/ca-0123abcd expires at 2026-05-07T03:32:01Z: "
        "the operator should have renewed it"
    )


async def test_records_and_backups_of_the_garden_are_checked_after_each_operation(
    care_site: CareSite, writer: RecordingClient
) -> None:
    admin = care_site.client
    await care_site.heal()
    await care_site.create_garden()
    await put_record(admin, "Error")
    await put_record(admin, "Error", "shoot")
    try:
        async with running(unit(writer, FakeClock(NOW))):
            found = await care_site.until(DNS_RECORDS_HEALTHY, "False", "DNSRecordsUnhealthy")
            assert found["message"] == (
                "DNSRecord garden/garden: last operation is Error, expected Succeeded"
            )
            await admin.delete(DNS_RECORD.gvk, Key("garden", "garden"))
            await care_site.patch_status({"lastOperation": last_operation("Succeeded")})
            garden = await until(
                admin,
                GARDEN,
                care_site.garden,
                lambda obj: is_healthy(obj) and DNS_RECORDS_HEALTHY not in statuses_of(obj),
            )
    finally:
        await admin.delete(DNS_RECORD.gvk, Key("garden", "shoot"))
    assert BACKUPS_HEALTHY not in statuses_of(garden)
