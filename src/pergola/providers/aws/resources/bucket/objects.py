"""The content of a bucket: objects with all their versions, delete markers, incomplete uploads."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, maps_at
from pergola.cloud.aws.codes import kind_of_error
from pergola.cloud.errors import CloudError, DependencyProblem, NotFound
from pergola.providers.aws.resources.bucket.bucket import Bucket

PAGE: Final = 1000
"""The maximum number of objects that S3 lists or deletes with one request."""
_ASKED: Final = 10
"""The number of versions whose retention is read: more would take long, and add little."""
_FORBIDDEN: Final = 403
_LOCKED: Final = "object lock"
"""Part of the message about an object whose retention has not ended."""

Report = Callable[[int], Awaitable[None]]
"""Called with the number of deleted versions."""


class Version(NamedTuple):
    """A version of an object, or a delete marker."""

    key: str
    id: str
    is_latest: bool
    is_marker: bool


class Retained(DependencyProblem):
    """Object lock retains versions of objects.

    Attributes:
        until: the end of the retention of the newest one; None if S3 does not say it.
    """

    until: datetime | None = None


async def delete_content(bucket: Bucket, prefix: str, report: Report, *, page: int = PAGE) -> None:
    """Delete all versions, delete markers and incomplete uploads below a prefix.

    Args:
        prefix: of keys; empty for everything.

    Raises:
        Retained: object lock retains some of them; the others are deleted.
        CloudError: AWS refused, perhaps only for some of them; the others are deleted.
    """
    deleted, refused = 0, list[JsonObject]()
    async for versions in _pages(bucket, prefix, page):
        found = await _delete(bucket, [{"Key": v.key, "VersionId": v.id} for v in versions])
        refused += found
        deleted += len(versions) - len(found)
        await report(deleted)
    await _abort_uploads(bucket, prefix)
    try:
        _check(bucket, refused)
    except Retained as error:
        error.until = await _retained_until(bucket, refused)
        raise


async def hide_content(bucket: Bucket, prefix: str, report: Report, *, page: int = PAGE) -> None:
    """Delete the current versions below a prefix in a bucket with locked objects.

    Each gets a delete marker. The versions themselves stay until their retention ends, and then
    expire.

    Raises:
        CloudError: AWS refused.
    """
    hidden = 0
    async for versions in _pages(bucket, prefix, page):
        current = [{"Key": v.key} for v in versions if v.is_latest and not v.is_marker]
        _check(bucket, await _delete(bucket, current))
        hidden += len(current)
        await report(hidden)
    await _abort_uploads(bucket, prefix)


async def _pages(bucket: Bucket, prefix: str, page: int) -> AsyncIterator[list[Version]]:
    """Yield pages of versions, each after the next one was listed.

    The entry where a listing continues therefore exists, even if yielded entries are deleted.
    """
    more: JsonObject = {"Prefix": prefix} if prefix else {}
    before: list[Version] = []
    while True:
        answer = await bucket.find("ListObjectVersions", MaxKeys=page, **more) or {}
        versions = [
            _version(each, is_marker=is_marker)
            for field, is_marker in (("Versions", False), ("DeleteMarkers", True))
            for each in maps_at(answer, field)
        ]
        if before:
            yield before
        before = versions
        if not answer.get("IsTruncated"):
            break
        more["KeyMarker"] = answer["NextKeyMarker"]
        if answer.get("NextVersionIdMarker"):
            more["VersionIdMarker"] = answer["NextVersionIdMarker"]
    if before:
        yield before


def _version(answer: JsonObject, *, is_marker: bool) -> Version:
    return Version(
        str(answer["Key"]), str(answer["VersionId"]), answer.get("IsLatest") is True, is_marker
    )


async def _delete(bucket: Bucket, objects: list[JsonObject]) -> list[JsonObject]:
    """Delete objects with one request, and return S3's errors about individual ones."""
    if not objects:
        return []
    answer = await bucket.find("DeleteObjects", Delete={"Objects": objects, "Quiet": True})
    errors = maps_at(answer or {}, "Errors")
    return [error for error in errors if _kind(error) is not NotFound]


async def _abort_uploads(bucket: Bucket, prefix: str) -> None:
    named: Mapping[str, str] = {"Prefix": prefix} if prefix else {}
    more: JsonObject = dict(named)
    while True:
        answer = await bucket.find("ListMultipartUploads", **more) or {}
        for upload in maps_at(answer, "Uploads"):
            await bucket.find(
                "AbortMultipartUpload", Key=upload["Key"], UploadId=upload["UploadId"]
            )
        if not answer.get("IsTruncated"):
            return
        more = {
            **named,
            "KeyMarker": answer["NextKeyMarker"],
            "UploadIdMarker": answer["NextUploadIdMarker"],
        }


def _check(bucket: Bucket, errors: list[JsonObject]) -> None:
    """Raise an error about the first object that S3 did not delete."""
    if errors:
        first, code = errors[0], str(errors[0].get("Code"))
        text = (
            f"s3 DeleteObjects in {bucket.aws.region}: S3 did not delete {len(errors)} object "
            f"versions of bucket {bucket.name}, such as {first.get('Key')} "
            f"({code}: {first.get('Message')})"
        )
        raise _kind(first)(text, code=code, call="s3 DeleteObjects")


async def _retained_until(bucket: Bucket, refused: list[JsonObject]) -> datetime | None:
    """Return the end of the longest retention of some versions, of those that were listed last."""
    ends: list[datetime] = []
    for each in refused[-_ASKED:]:
        named = {field: each[field] for field in ("Key", "VersionId") if each.get(field)}
        try:
            answer = await bucket.find("HeadObject", **named)
        except CloudError:  # older policies lack the permission
            continue
        end = (answer or {}).get("ObjectLockRetainUntilDate")
        if isinstance(end, datetime):
            ends.append(end)
    return max(ends, default=None)


def _kind(error: JsonObject) -> type[CloudError]:
    if _LOCKED in str(error.get("Message")).lower():
        return Retained
    return kind_of_error(str(error.get("Code")), _FORBIDDEN)
