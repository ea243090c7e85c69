"""BackupEntries of a garden in S3, on the API server and with moto as AWS."""

import base64
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    map_at,
    maps_at,
)
from pergola.cloud.aws import AwsClient
from pergola.extensions.backups import CREATED_BY, FORCE_DELETION
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.providers.aws.backup import AwsBackupEntry
from pergola.providers.aws.resources.bucket.bucket import Bucket, bucket_of
from pergola.providers.aws.resources.bucket.objects import delete_content, hide_content
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY_CONFIG
from pergola.testing.waiting import running, until, until_gone
from tests.support.aws.garden_site import REGION, UID, GardenSite, HoldingAws, garden_site
from tests.support.aws.site import codes_in

BUCKET = "garden-backups"
PURPOSE = "security.gardener.cloud/purpose"
FINALIZER = "extensions.gardener.cloud/backupentry"
SPEC: JsonObject = {"region": REGION, "bucketName": BUCKET}


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, holding: HoldingAws
) -> AsyncIterator[GardenSite]:
    site = await garden_site(cluster_client, namespace, holding, AwsBackupEntry)
    yield site
    await site.clean_up()


@pytest.fixture
async def bucket(site: GardenSite) -> AsyncIterator[Bucket]:
    async with site.client_of() as client:
        yield await bucket_in(client)


async def bucket_in(client: AwsClient, *, lock: bool = False, name: str = BUCKET) -> Bucket:
    """Create a bucket, and return it."""
    place = {"LocationConstraint": client.region}
    await client.call(
        "s3",
        "CreateBucket",
        Bucket=name,
        CreateBucketConfiguration=place,
        ObjectLockEnabledForBucket=lock,
    )
    bucket = await bucket_of(client, name)
    if lock:
        rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 4}}
        configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        await bucket.call("PutObjectLockConfiguration", ObjectLockConfiguration=configuration)
    return bucket


async def versioned(bucket: Bucket) -> None:
    status = {"Status": "Enabled"}
    await bucket.call("PutBucketVersioning", VersioningConfiguration=status)


async def put(bucket: Bucket, *keys: str) -> None:
    for key in keys:
        await bucket.call("PutObject", Key=key, Body=b"snapshot")


async def listed(bucket: Bucket) -> dict[str, list[str]]:
    """Return the keys of all versions, and of all delete markers."""
    answer = await bucket.call("ListObjectVersions")
    return {
        field: sorted(each["Key"] for each in maps_at(answer, field))
        for field in ("Versions", "DeleteMarkers")
    }


async def unreported(_deleted: int) -> None:
    pass


def of(gvk: GroupVersionKind) -> JsonObject:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind}


def decoded(secret: JsonObject) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


async def test_the_etcd_gets_bucket_region_and_credentials(site: GardenSite) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")

    secret = await site.client.get(SECRET, Key(site.namespace, "etcd-backup"))
    assert decoded(secret) == {
        "accessKeyID": "AKIATEST",
        "secretAccessKey": "secret",
        "bucketName": BUCKET,
        "region": REGION,
    }
    assert annotations_of(secret)[CREATED_BY] == site.key.name
    assert site.aws.taken() == []


async def test_the_etcd_gets_the_role_of_a_workload_identity_and_keeps_its_token(
    site: GardenSite,
) -> None:
    key = Key(site.namespace, "etcd-backup")
    role = "arn:aws:iam::123456789012:role/backups"
    config = {**of(WORKLOAD_IDENTITY_CONFIG), "roleARN": role}
    await site.client.patch(
        SECRET,
        site.secret_key,
        {
            "metadata": {"labels": {PURPOSE: "workload-identity-token-requestor"}},
            "data": None,
            "stringData": {"config": dump(config), "token": "of the infrastructure"},
        },
    )
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.client.patch(SECRET, key, {"stringData": {"token": "of the etcd"}})
        await site.again()

    secret = await site.client.get(SECRET, key)
    assert decoded(secret) == {
        "bucketName": BUCKET,
        "config": dump(config),
        "region": REGION,
        "roleARN": role,
        "token": "of the etcd",
    }
    assert site.aws.taken() == []


async def test_rotated_credentials_reach_the_etcd_and_an_unchanged_secret_is_not_written(
    site: GardenSite,
) -> None:
    key = Key(site.namespace, "etcd-backup")
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        labelled = await site.client.patch(SECRET, key, {"metadata": {"labels": {"team": "x"}}})
        await site.again()
        same = await site.client.get(SECRET, key)
        await site.put_secret(accessKeyID="AKIANEW", secretAccessKey="new")
        await site.again()
        changed = await site.client.get(SECRET, key)

    assert same == labelled
    assert decoded(changed)["accessKeyID"] == "AKIANEW"
    assert map_at(changed, "metadata")["labels"] == {"team": "x"}


async def test_without_the_namespace_of_the_etcd_no_secret_is_written(
    site: GardenSite,
) -> None:
    site.key = Key("", f"absent-{site.namespace}--{UID}")
    async with running(site.controller()):
        await site.ask(SPEC)
        done = await site.until_operation("Create")
        await site.delete()
        await site.until_gone()

    assert "lastError" not in done["status"]


async def test_an_entry_of_a_shoot_needs_no_cluster(site: GardenSite) -> None:
    async with running(site.controller(served="shoot")):
        await site.ask({**SPEC, "class": "shoot"})
        await site.until_operation("Create")

    assert await site.client.find(SECRET, Key(site.namespace, "etcd-backup"))


async def test_only_objects_under_the_prefix_of_the_entry_are_deleted(
    site: GardenSite, bucket: Bucket
) -> None:
    own = site.key.name
    siblings = [f"{own}0/full", f"{own[:-1]}/full", own, f"x/{own}/full"]
    await versioned(bucket)
    await put(bucket, *siblings, f"{own}/v2/full", f"{own}/v2/full", f"{own}/v2/delta")
    await bucket.call("DeleteObjects", Delete={"Objects": [{"Key": f"{own}/v2/delta"}]})
    await bucket.call("CreateMultipartUpload", Key=f"{own}/v2/part")
    await bucket.call("CreateMultipartUpload", Key=f"{own}0/part")

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.delete()
        await site.until_gone()

    assert await listed(bucket) == {"Versions": sorted(siblings), "DeleteMarkers": []}
    uploads = await bucket.call("ListMultipartUploads")
    assert [each["Key"] for each in uploads["Uploads"]] == [f"{own}0/part"]
    assert await site.client.find(SECRET, Key(site.namespace, "etcd-backup")) is None


async def test_a_source_entry_has_a_separate_secret_and_prefix(
    site: GardenSite, bucket: Bucket
) -> None:
    own = site.key.name
    await put(bucket, f"{own}/full", f"source-{own}/full")
    site.key = Key("", f"source-{own}")

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        secret = await site.client.find(SECRET, Key(site.namespace, "source-etcd-backup"))
        await site.delete()
        await site.until_gone()

    assert secret is not None
    assert (await listed(bucket))["Versions"] == [f"source-{own}/full"]


async def test_a_secret_that_another_entry_created_is_kept(
    site: GardenSite, bucket: Bucket
) -> None:
    key = Key(site.namespace, "etcd-backup")
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.client.patch(SECRET, key, {"metadata": {"annotations": {CREATED_BY: "other"}}})
        await site.delete()
        await site.until_gone()

    assert await site.client.find(SECRET, key)
    assert bucket.name == BUCKET


async def test_nothing_is_deleted_from_a_missing_bucket(site: GardenSite) -> None:
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.delete()
        await site.until_gone()

    assert "s3 ListObjectVersions" not in site.aws.taken()


async def test_more_objects_than_fit_on_a_page_are_deleted(bucket: Bucket) -> None:
    await versioned(bucket)
    await put(bucket, *(f"own/{number}" for number in range(5)), "own/0", "other/0")
    await bucket.call("DeleteObjects", Delete={"Objects": [{"Key": "own/1"}]})

    await delete_content(bucket, "own/", unreported, page=2)

    assert await listed(bucket) == {"Versions": ["other/0"], "DeleteMarkers": []}


async def test_locked_backups_are_hidden_once_and_expire_with_their_retention(
    site: GardenSite,
) -> None:
    own = site.key.name
    async with site.client_of() as client:
        bucket = await bucket_in(client, lock=True)
        await put(bucket, f"{own}/a", f"{own}/a", f"{own}/b", f"{own}0/a")
        async with running(site.controller()):
            await site.ask(SPEC)
            await site.until_operation("Create")
            await site.delete()
            await site.until_gone()
        await hide_content(bucket, f"{own}/", unreported)
        found = await listed(bucket)

    assert found["Versions"] == [f"{own}/a", f"{own}/a", f"{own}/b", f"{own}0/a"]
    assert found["DeleteMarkers"] == [f"{own}/a", f"{own}/b"]


async def test_backups_outlive_their_entry_for_a_grace_period_unless_the_deletion_is_forced(
    site: GardenSite, bucket: Bucket
) -> None:
    own = site.key.name
    await put(bucket, f"{own}/a")
    site.grace = timedelta(hours=24)

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.delete()
        kept = await site.until_failed(f"the backups below {own}/ are kept until")
        before = await listed(bucket)
        await site.edit({"metadata": {"annotations": {FORCE_DELETION: "true"}}})
        await site.until_gone()

    assert FORCE_DELETION in map_at(kept, "status", "lastError")["description"]
    assert before["Versions"] == [f"{own}/a"]
    assert (await listed(bucket))["Versions"] == []


async def test_a_migrated_entry_keeps_the_backups_and_recreates_the_secret_of_the_etcd(
    site: GardenSite, bucket: Bucket
) -> None:
    key = Key(site.namespace, "etcd-backup")
    await put(bucket, f"{site.key.name}/a")
    site.aws.taken()

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.annotate("migrate")
        await site.until_operation("Migrate")
        await until(site.client, SECRET, site.secret_key, lambda obj: not finalizers_of(obj))
        await site.client.delete(SECRET, key)
        await until_gone(site.client, SECRET, key)
        await site.again("restore")

    assert await site.client.find(SECRET, key)
    assert site.aws.taken() == []


async def test_without_credentials_the_backups_are_kept_and_an_event_reports_that(
    site: GardenSite, bucket: Bucket
) -> None:
    own = site.key.name
    await put(bucket, f"{own}/a")
    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.client.patch(SECRET, site.secret_key, {"metadata": {"finalizers": []}})
        await site.client.delete(SECRET, site.secret_key)
        await site.delete()
        await site.until_gone()
        await site.until_noted("default", "delete them manually")

    assert (await listed(bucket))["Versions"] == [f"{own}/a"]


@pytest.mark.parametrize(
    ("operation", "code", "status", "expected"),
    [
        ("ListObjectVersions", "AccessDenied", 403, "ERR_INFRA_UNAUTHORIZED"),
        ("DeleteObjects", "SlowDown", 503, "ERR_INFRA_RATE_LIMITS_EXCEEDED"),
        ("GetBucketLocation", "InvalidAccessKeyId", 403, "ERR_INFRA_UNAUTHENTICATED"),
    ],
)
async def test_errors_of_aws_have_their_codes(
    site: GardenSite, bucket: Bucket, operation: str, code: str, status: int, expected: str
) -> None:
    await put(bucket, f"{site.key.name}/a")
    site.aws.fail(operation, code, status=status, times=50)

    async with running(site.controller()):
        await site.ask(SPEC)
        await site.until_operation("Create")
        await site.delete()
        failed = await site.until_failed()
        site.aws.heal()
        await site.edit({"metadata": {"annotations": {marks.TIMESTAMP: "again"}}})
        await site.until_gone()

    assert codes_in(failed) == [expected]


async def test_deletion_survives_a_kill_after_any_call(site: GardenSite, bucket: Bucket) -> None:
    own = site.key.name
    await versioned(bucket)
    await put(bucket, f"{own}/a", f"{own}/a", f"{own}/b", f"{own}0/a")
    await site.ask(SPEC)
    async with running(site.controller()):
        await site.until_operation("Create")

    await site.delete()
    kills = await site.survive(site.until_gone)

    assert (await listed(bucket))["Versions"] == [f"{own}0/a"]
    assert kills > 1
