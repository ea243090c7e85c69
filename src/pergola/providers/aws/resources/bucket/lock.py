"""Object lock: no version of an object can be deleted or replaced before its retention ends."""

from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.errors import configuration_problem
from pergola.providers.aws.resources.bucket.bucket import Bucket

_ENABLED: Final = "Enabled"
_COMPLIANCE: Final = "COMPLIANCE"


class Retention(NamedTuple):
    """The retention of new objects.

    Attributes:
        mode: `COMPLIANCE`, which cannot be ended early, or `GOVERNANCE`.
    """

    mode: str
    days: int

    def __str__(self) -> str:
        return f"{self.mode.lower()} for {24 * self.days}h"


class Lock(NamedTuple):
    """The object lock of a bucket.

    Attributes:
        is_enabled: whether objects can be locked at all; once enabled, it stays so.
        retention: for new objects; None if they are not locked.
    """

    is_enabled: bool = False
    retention: Retention | None = None


async def observe_lock(bucket: Bucket) -> Lock:
    """Return the object lock of a bucket.

    Raises:
        CloudError: AWS refused.
    """
    answer = await bucket.find("GetObjectLockConfiguration")
    found = map_at(answer or {}, "ObjectLockConfiguration")
    default = map_at(found, "Rule", "DefaultRetention")
    days = default.get("Days") or 365 * int(default.get("Years") or 0)
    retention = Retention(str(default.get("Mode")), int(days)) if days else None
    return Lock(found.get("ObjectLockEnabled") == _ENABLED, retention)


async def apply_lock(bucket: Bucket, current: Lock, desired: Retention | None) -> None:
    """Change the retention of new objects; locked objects stay locked.

    Raises:
        ExtensionError: the retention would be weaker than the current one, which is in compliance
            mode; it can only be switched off.
        CloudError: AWS refused.
    """
    if current.retention == desired:
        return
    if current.retention is not None and desired is not None:
        _check_not_weaker(current.retention, desired)
    if not current.is_enabled:
        await _enable_versioning(bucket)
    lock: JsonObject = {"ObjectLockEnabled": _ENABLED}
    if desired is not None:
        lock["Rule"] = {"DefaultRetention": {"Mode": desired.mode, "Days": desired.days}}
    await bucket.call("PutObjectLockConfiguration", ObjectLockConfiguration=lock)


def _check_not_weaker(current: Retention, desired: Retention) -> None:
    is_weaker = desired.mode != _COMPLIANCE or desired.days < current.days
    if current.mode == _COMPLIANCE and is_weaker:
        raise configuration_problem(
            f"spec.providerConfig.immutability asks for {desired}, but the bucket has {current}: "
            "in compliance mode, the mode cannot change and the period cannot become shorter"
        )


async def _enable_versioning(bucket: Bucket) -> None:
    answer = await bucket.call("GetBucketVersioning")
    if answer.get("Status") != _ENABLED:
        status = {"Status": _ENABLED}
        await bucket.call("PutBucketVersioning", VersioningConfiguration=status)
