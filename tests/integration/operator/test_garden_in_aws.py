"""The DNS records and backups of a Garden, served by the AWS extension, with moto as AWS."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Final

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound as NotInAws
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.operator.reconcile.extension_resources import backup_tasks, dns_tasks
from pergola.operator.reconcile.extension_resources.caller import Caller
from pergola.providers.aws.resources.record_sets import observe_record_sets
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.testing.waiting import running
from tests.support.aws.extension import aws_extension
from tests.support.aws.gardens import BUCKET, IN_BUCKET, KEYS, NAMES, REGION, ZONE
from tests.support.garden import landscape
from tests.support.garden_extensions import CLOCK, LATER, remove_resources
from tests.support.gardens import with_values
from tests.support.objects import secret

BALANCER: Final = "a1b2.elb.eu-west-1.amazonaws.com"


@pytest.fixture(scope="module")
def moto_server() -> Iterator[str]:
    with moto() as server:
        yield server


@pytest.fixture
async def aws(moto_server: str) -> AsyncIterator[CorrectedAws]:
    async with CorrectedAws(moto_server) as double:
        yield double


@pytest.fixture
async def account(aws: CorrectedAws) -> AsyncIterator[AwsClient]:
    async with aws.client(REGION, retry=QUICK) as client:
        yield client


@pytest.fixture
async def garden(runtime: Client) -> AsyncIterator[Landscape]:
    credentials = secret("garden", "credentials", **KEYS)
    with suppress(AlreadyExists):
        await runtime.create(credentials)
    references = {("Secret", Key("garden", "credentials")): credentials}
    yield landscape(with_values({}, IN_BUCKET), references=references)
    await remove_resources(runtime)
    for name in ("credentials", "etcd-backup"):
        with suppress(NotFound):
            key = Key("garden", name)
            await runtime.patch(SECRET, key, {"metadata": {"finalizers": []}})
            await runtime.delete(SECRET, key)


@pytest.fixture
async def extension(runtime: Client, aws: CorrectedAws) -> AsyncIterator[list[Unit]]:
    """Yield the controllers of the AWS extension for the class `garden`."""
    async with aws_extension(runtime, aws.url) as units:
        yield units


async def test_the_etcd_of_a_garden_gets_a_bucket_and_credentials(
    runtime: Client, garden: Landscape, extension: list[Unit], aws: CorrectedAws, account: AwsClient
) -> None:
    async with running(*extension):
        for clock in (CLOCK, LATER):
            aws.taken()
            caller = Caller(runtime, clock)
            await backup_tasks.reconcile_bucket(caller, garden)
            await backup_tasks.reconcile_entry(caller, garden)
        later = aws.taken()
        assert await runtime.find(SECRET, Key("garden", "etcd-backup"))
        await account.call("s3", "GetBucketLocation", Bucket=BUCKET)
        await backup_tasks.destroy_entry(caller, garden)
        await backup_tasks.destroy_bucket(caller, garden)

    assert later == []
    assert await runtime.find(SECRET, Key("garden", "etcd-backup")) is None
    with pytest.raises(NotInAws):
        await account.call("s3", "GetBucketLocation", Bucket=BUCKET)


async def test_the_names_of_a_garden_lead_to_its_load_balancer_until_it_is_deleted(
    runtime: Client, garden: Landscape, extension: list[Unit], account: AwsClient
) -> None:
    created = await account.call("route53", "CreateHostedZone", Name=ZONE, CallerReference="once")
    zone = created["HostedZone"]["Id"].rpartition("/")[2]

    async def types() -> list[list[str]]:
        names = [await observe_record_sets(account, zone, each) for each in NAMES]
        return [[records.type for records in found] for found in names]

    async with running(*extension):
        caller = Caller(runtime, CLOCK)
        await dns_tasks.reconcile_dns_records(caller, garden, "192.0.2.1")
        by_address = await types()
        await dns_tasks.reconcile_dns_records(caller, garden, BALANCER)
        by_name = await types()
        await dns_tasks.destroy_dns_records(caller)

    assert by_address == by_name == [["A"], ["A"], ["A"]]
    assert await types() == [[], [], []]
