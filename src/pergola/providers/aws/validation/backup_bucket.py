"""The config and credentials of a backup bucket, in BackupBuckets and Seeds (spec 31 §8)."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid, required, unsupported
from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonValue, map_at
from pergola.api.schema.read import Malformed
from pergola.api.schema.validate import Finding
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.providers.aws.backup_bucket_config import (
    BACKUP_BUCKET_CONFIG,
    BackupBucketConfig,
)
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY

_DAY: Final = timedelta(days=1)
_COMPLIANCE: Final = "compliance"
_GOVERNANCE: Final = "governance"
_PERIOD: Final = "retentionPeriod"
_CREDENTIALS: Final[Sequence[GroupVersionKind]] = (SECRET, WORKLOAD_IDENTITY)


def check_backup_bucket(config: BackupBucketConfig) -> Iterator[Cause]:
    """Yield all findings about a config; paths are relative to it."""
    found = config.immutability
    if found is None:
        return
    path, period = "immutability", found.retention_period
    if found.retention_type != "bucket":
        yield invalid(f"{path}.retentionType", found.retention_type, "must be bucket")
    if period < _DAY:
        text = "must be at least 24h: S3 retains objects for whole days"
        yield invalid(f"{path}.retentionPeriod", str(period), text)
    if period % _DAY:
        text = "must be a multiple of 24h: S3 retains objects for whole days"
        yield invalid(f"{path}.retentionPeriod", str(period), text)
    if found.mode not in (_COMPLIANCE, _GOVERNANCE):
        text = f"must be {_COMPLIANCE} or {_GOVERNANCE}"
        yield invalid(f"{path}.mode", found.mode, text)


def check_created(value: JsonValue, *, path: str) -> Iterator[Cause]:
    """Yield all findings about the config of a new bucket, which may have unknown fields."""
    try:
        config = _read(value, is_strict=False)
    except Malformed as error:
        yield _unreadable(path, error)
        return
    for cause in check_backup_bucket(config):
        yield cause.under(path)


def check_changed(value: JsonValue, old: JsonValue, *, path: str) -> Iterator[Cause]:
    """Yield all findings about a config and its change; None stands for a missing one."""
    try:
        before = _read(old, is_strict=False)
    except Malformed as error:
        yield _unreadable(path, error, "the stored config cannot be compared")
        return
    try:
        config = _read(value, is_strict=True)
    except Malformed as error:
        yield _unreadable(path, error)
        return
    for cause in (*check_backup_bucket(config), *_check_change(config, before)):
        yield cause.under(path)


def check_credentials_ref(reference: JsonValue, *, path: str) -> Iterator[Cause]:
    """Yield a finding if a reference names neither a Secret nor a WorkloadIdentity."""
    if reference is None:
        yield required(path, "name a Secret or WorkloadIdentity with access to the bucket")
        return
    found = GroupVersionKind.of(reference if isinstance(reference, dict) else {})
    if found not in _CREDENTIALS:
        yield unsupported(path, str(found), map(str, _CREDENTIALS))


def _check_change(config: BackupBucketConfig, old: BackupBucketConfig) -> Iterator[Cause]:
    """Yield a finding if a retention in compliance mode, which S3 keeps, would be weakened."""
    new, before = config.immutability, old.immutability
    if new is None or before is None or before.mode != _COMPLIANCE:
        return
    if new.mode == _GOVERNANCE:
        yield forbidden("immutability.mode", f"{_COMPLIANCE} cannot be changed to {_GOVERNANCE}")
    elif new.retention_period < before.retention_period:
        text = (
            f"in mode {_COMPLIANCE}, the period cannot be shortened from "
            f"{before.retention_period} to {new.retention_period}"
        )
        yield forbidden("immutability.retentionPeriod", text)


def _read(value: JsonValue, *, is_strict: bool) -> BackupBucketConfig:
    if value is None:
        return BackupBucketConfig()
    immutability = map_at({"config": value}, "config", "immutability")
    if _PERIOD in immutability and immutability[_PERIOD] is None:
        finding = Finding(f"immutability.{_PERIOD}", "must not be null")
        raise Malformed(BACKUP_BUCKET_CONFIG.kind, [finding])
    read = read_strict if is_strict else read_leniently
    return read(BackupBucketConfig, value, BACKUP_BUCKET_CONFIG, path="", needs_type=True)


def _unreadable(path: str, error: Malformed, what: str = "") -> Cause:
    return Cause(
        "FieldValueInvalid", ": ".join(filter(None, ["Invalid value", what, str(error)])), path
    )
