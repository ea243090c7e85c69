"""BackupBuckets of a garden in S3, on the API server and with moto as AWS."""

import copy
import re
from collections.abc import AsyncIterator

import orjson
import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, finalizers_of, map_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound
from pergola.kube.client import Client
from pergola.providers.aws.backup import AwsBackupBucket
from pergola.providers.aws.resources.bucket.bucket import bucket_of
from pergola.providers.aws.resources.bucket.lock import Lock, Retention, observe_lock
from pergola.providers.aws.resources.bucket.settings import observe_settings
from pergola.testing.waiting import running
from tests.support.aws.garden_site import REGION, GardenSite, HoldingAws, garden_site
from tests.support.aws.site import codes_in

FINALIZER = "extensions.gardener.cloud/backupbucket"
SPEC: JsonObject = {"region": REGION}
LOCKED: JsonObject = {
    "region": REGION,
    "providerConfig": {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "BackupBucketConfig",
        "immutability": {
            "retentionType": "bucket",
            "retentionPeriod": "96h",
            "mode": "governance",
        },
    },
}
ALL = {
    "s3 CreateBucket",
    "s3 PutBucketEncryption",
    "s3 PutPublicAccessBlock",
    "s3 PutBucketPolicy",
    "s3 PutBucketLifecycleConfiguration",
}


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, holding: HoldingAws
) -> AsyncIterator[GardenSite]:
    site = await garden_site(cluster_client, namespace, holding, AwsBackupBucket)
    yield site
    await site.clean_up()


@pytest.fixture
async def s3(site: GardenSite) -> AsyncIterator[AwsClient]:
    async with site.client_of() as client:
        yield client


async def exists(s3: AwsClient, name: str) -> bool:
    try:
        await s3.call("s3", "GetBucketLocation", Bucket=name)
    except NotFound:
        return False
    return True


async def create(s3: AwsClient, name: str) -> None:
    """Create a bucket by hand, as its owner would."""
    place = {"LocationConstraint": s3.region}
    await s3.call("s3", "CreateBucket", Bucket=name, CreateBucketConfiguration=place)


async def put(s3: AwsClient, bucket: str, *keys: str) -> None:
    for key in keys:
        await s3.call("s3", "PutObject", Bucket=bucket, Key=key, Body=b"snapshot")


async def test_a_bucket_is_created_with_all_its_settings(site: GardenSite, s3: AwsClient) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        written = site.aws.writes()

    bucket = await bucket_of(s3, site.key.name)
    assert set(written) - {"sts GetCallerIdentity"} == ALL
    assert await observe_settings(bucket) == {}
    access = await bucket.call("GetPublicAccessBlock")
    assert set(map_at(access, "PublicAccessBlockConfiguration").values()) == {True}
    policy = orjson.loads((await bucket.call("GetBucketPolicy"))["Policy"])
    assert {each["Effect"] for each in policy["Statement"]} == {"Deny"}
    assert await observe_lock(bucket) == Lock()


async def test_an_unchanged_bucket_is_only_read(site: GardenSite) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.again()
        site.aws.taken()
        await site.again()
        calls = site.aws.taken()

    assert len(calls) == len(set(calls)) == 6
    assert all(call.startswith("s3 Get") for call in calls)


async def test_additions_of_other_writers_are_kept_and_removed_settings_are_restored(
    site: GardenSite, s3: AwsClient
) -> None:
    name = site.key.name
    statement = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "s3:PutBucketAcl"}
    policy = orjson.dumps({"Statement": [{**statement, "Resource": f"arn:aws:s3:::{name}"}]})
    rule = {
        "ID": "theirs",
        "Status": "Enabled",
        "Filter": {"Prefix": "x/"},
        "Expiration": {"Days": 9},
    }

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await s3.call("s3", "PutBucketPolicy", Bucket=name, Policy=policy.decode())
        rules = {"Rules": [rule]}
        await s3.call(
            "s3", "PutBucketLifecycleConfiguration", Bucket=name, LifecycleConfiguration=rules
        )
        await site.again()

    bucket = await bucket_of(s3, name)
    assert await observe_settings(bucket) == {}
    found = orjson.loads((await bucket.call("GetBucketPolicy"))["Policy"])
    assert found["Statement"][0]["Sid"] == "Theirs"
    lifecycle = await bucket.call("GetBucketLifecycleConfiguration")
    assert lifecycle["Rules"][0]["ID"] == "theirs"


async def test_deletion_removes_the_bucket_with_all_versions_of_its_objects(
    site: GardenSite, s3: AwsClient
) -> None:
    name = site.key.name
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        versioning = {"Status": "Enabled"}
        await s3.call("s3", "PutBucketVersioning", Bucket=name, VersioningConfiguration=versioning)
        await put(s3, name, "a/1", "a/1", "b/2")
        await s3.call("s3", "DeleteObjects", Bucket=name, Delete={"Objects": [{"Key": "b/2"}]})
        await s3.call("s3", "CreateMultipartUpload", Bucket=name, Key="c/3")
        await site.delete()
        await site.until_gone()

    assert not await exists(s3, name)


async def test_a_bucket_that_existed_before_is_used_but_neither_changed_nor_deleted(
    site: GardenSite, s3: AwsClient
) -> None:
    name = site.key.name
    await create(s3, name)
    await put(s3, name, "kept")
    site.aws.taken()

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        written = set(site.aws.writes())
        await site.delete()
        await site.until_gone()
        await site.until_noted("default", "lacks a block of public access")
        await site.until_noted("default", "was not created for this BackupBucket, and is kept")

    assert written <= {"sts GetCallerIdentity"}
    assert await exists(s3, name)


async def test_a_bucket_of_another_implementation_is_taken_over_and_deleted(
    site: GardenSite, s3: AwsClient
) -> None:
    await create(s3, site.key.name)
    await site.ask(SPEC, asked="")
    last = {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"}
    await site.edit_status({"lastOperation": {**last, "lastUpdateTime": "2026-01-01T00:00:00Z"}})
    await site.edit({"metadata": {"finalizers": [FINALIZER]}})

    async with running(site.controller()):
        await site.again()
        corrected = await observe_settings(await bucket_of(s3, site.key.name))
        await site.delete()
        await site.until_gone()

    assert corrected == {}
    assert not await exists(s3, site.key.name)


@pytest.mark.parametrize(
    ("operation", "code", "status", "text", "expected"),
    [
        ("GetBucketLocation", "AccessDenied", 403, "another account, or", "ERR_INFRA_UNAUTHORIZED"),
        (
            "CreateBucket",
            "BucketAlreadyExists",
            409,
            "belongs to another account, and",
            "ERR_CONFIGURATION_PROBLEM",
        ),
        ("CreateBucket", "TooManyBuckets", 400, "quota", "ERR_INFRA_QUOTA_EXCEEDED"),
        ("PutBucketPolicy", "AccessDenied", 403, "s3:PutBucketPolicy", "ERR_INFRA_UNAUTHORIZED"),
        ("GetBucketPolicy", "ExpiredToken", 400, "credentials", "ERR_INFRA_UNAUTHENTICATED"),
    ],
)
async def test_errors_of_aws_have_their_codes(
    site: GardenSite, operation: str, code: str, status: int, text: str, expected: str
) -> None:
    site.aws.fail(operation, code, status=status, times=2)

    async with running(site.controller()):
        await site.ask(SPEC)
        failed = await site.until_failed(text)
        site.aws.heal()
        await site.until_operation("Create")

    assert codes_in(failed) == [expected]


@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("BucketAlreadyExists", 409)])
async def test_a_bucket_that_a_user_creates_after_a_refusal_is_not_ours(
    site: GardenSite, s3: AwsClient, code: str, status: int
) -> None:
    name = site.key.name
    site.aws.fail("CreateBucket", code, status=status, times=1_000)
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_failed("")
    site.aws.heal()
    await create(s3, name)
    await put(s3, name, "kept")
    site.aws.taken()

    async with running(site.controller()):
        await site.until_operation("Create")
        written = set(site.aws.writes())
        await site.delete()
        await site.until_gone()

    assert written <= {"sts GetCallerIdentity"}
    assert await exists(s3, name)


async def test_throttling_is_named(site: GardenSite) -> None:
    site.aws.fail("CreateBucket", "SlowDown", status=503, times=50)

    async with running(site.controller()):
        await site.ask(SPEC)
        failed = await site.until_failed("throttling")

    assert codes_in(failed) == ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]


async def test_a_bucket_in_another_region_is_a_problem_of_the_configuration(
    site: GardenSite,
) -> None:
    async with site.aws.client("eu-central-1") as elsewhere:
        await create(elsewhere, site.key.name)

    async with running(site.controller()):
        await site.ask(SPEC)
        failed = await site.until_failed("is in region eu-central-1, not in eu-west-1")

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]


async def test_immutable_backups_cannot_be_deleted_before_their_retention_ends(
    site: GardenSite, s3: AwsClient
) -> None:
    name = site.key.name
    async with running(site.controller()):
        await site.ask(LOCKED)
        await site.until_operation("Create")
        lock = await observe_lock(await bucket_of(s3, name))
        await put(s3, name, "a/1")
        site.aws.taken()
        await site.again()
        unchanged = [call for call in site.aws.writes() if call.startswith("s3")]
        await site.delete()
        failed = await site.until_failed("S3 did not delete 1 object versions")
        attempts = len([call for call in site.aws.taken() if call == "s3 DeleteObjects"])

    assert attempts == 1  # the next one comes when the retention ends, or after an hour
    assert re.search(
        r"cannot be deleted before the retention of its objects ends, at 2\d{3}-\d\d-\d\dT",
        failed["status"]["lastError"]["description"],
    )
    assert lock == Lock(is_enabled=True, retention=Retention("GOVERNANCE", 4))
    assert unchanged == []
    assert codes_in(failed) == ["ERR_INFRA_DEPENDENCIES"]


async def test_immutability_of_a_bucket_can_be_switched_on_and_off(
    site: GardenSite, s3: AwsClient
) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.edit({"spec": LOCKED})
        await site.again()
        locked = await observe_lock(await bucket_of(s3, site.key.name))
        await site.edit({"spec": {"providerConfig": None}})
        await site.again()
        free = await observe_lock(await bucket_of(s3, site.key.name))

    assert locked.retention == Retention("GOVERNANCE", 4)
    assert free == Lock(is_enabled=True)


@pytest.mark.parametrize(
    ("immutability", "text"),
    [
        ({"retentionPeriod": "36h"}, "multiple of 24h"),
        ({"mode": "none"}, "immutability.mode"),
        ({"mode": None}, "immutability.mode"),
        ({"locked": True}, "immutability.locked"),
    ],
)
async def test_an_invalid_configuration_is_reported_with_its_field(
    site: GardenSite, immutability: JsonObject, text: str
) -> None:
    config = copy.deepcopy(LOCKED["providerConfig"])
    config["immutability"] |= immutability

    async with running(site.controller()):
        await site.ask({**SPEC, "providerConfig": config})
        failed = await site.until_failed(text)

    assert codes_in(failed) == ["ERR_CONFIGURATION_PROBLEM"]
    assert site.aws.taken() == []


async def test_the_credentials_are_protected_as_long_as_a_bucket_needs_them(
    site: GardenSite,
) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        protected = finalizers_of(await site.client.get(SECRET, site.secret_key))
        await site.client.delete(SECRET, site.secret_key)
        await site.delete()
        await site.until_gone()

    assert protected == [FINALIZER]
    assert await site.client.find(SECRET, Key(site.namespace, site.secret_key.name)) is None


async def test_creation_and_deletion_survive_a_kill_after_any_call(
    site: GardenSite, s3: AwsClient
) -> None:
    await site.ask(SPEC)
    created = await site.survive(lambda: site.until_operation("Create"))
    settings = await observe_settings(await bucket_of(s3, site.key.name))
    await put(s3, site.key.name, "a/1", "b/2")

    await site.delete()
    deleted = await site.survive(site.until_gone)

    assert settings == {}
    assert not await exists(s3, site.key.name)
    assert created > len(ALL)
    assert deleted > 1
