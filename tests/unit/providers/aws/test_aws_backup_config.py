"""The configuration of a backup bucket."""

from typing import Any, cast

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws.backup import retention_of
from pergola.providers.aws.backup_bucket_config import BACKUP_BUCKET_CONFIG
from pergola.providers.aws.resources.bucket.bucket import Bucket
from pergola.providers.aws.resources.bucket.lock import Lock, Retention, apply_lock

COMPLETE: JsonObject = {
    "retentionType": "bucket",
    "retentionPeriod": "48h",
    "mode": "governance",
}


def bucket(**immutability: str) -> JsonObject:
    gvk = BACKUP_BUCKET_CONFIG
    config = {"apiVersion": gvk.api_version, "kind": gvk.kind, "immutability": immutability}
    return {"spec": {"providerConfig": config}}


@pytest.mark.parametrize("mode", ["compliance", "governance"])
def test_the_mode_of_the_retention_is_the_configured_one(mode: str) -> None:
    assert retention_of(bucket(**{**COMPLETE, "mode": mode})) == Retention(mode.upper(), 2)


@pytest.mark.parametrize("missing", COMPLETE)
def test_no_field_of_the_retention_has_a_default(missing: str) -> None:
    """A default would choose `compliance`, which nobody can undo, or hide that it was forgotten."""
    rest = {field: value for field, value in COMPLETE.items() if field != missing}

    with pytest.raises(ExtensionError, match=rf"spec.providerConfig.immutability.{missing}"):
        retention_of(bucket(**rest))


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_a_config_says_its_type(field: str) -> None:
    obj = bucket(**COMPLETE)
    del obj["spec"]["providerConfig"][field]

    with pytest.raises(Malformed, match=rf"spec.providerConfig.{field}"):
        retention_of(obj)


def test_a_bucket_without_a_config_has_no_retention() -> None:
    assert retention_of({"spec": {}}) is None


class Calls:
    """A bucket that records its changes."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def call(self, operation: str, **_: Any) -> JsonObject:
        self.calls.append(operation)
        return {}


@pytest.mark.parametrize(
    ("current", "desired", "is_allowed"),
    [
        (Retention("COMPLIANCE", 4), Retention("GOVERNANCE", 8), False),
        (Retention("COMPLIANCE", 4), Retention("COMPLIANCE", 3), False),
        (Retention("COMPLIANCE", 4), Retention("COMPLIANCE", 5), True),
        (Retention("COMPLIANCE", 4), None, True),
        (Retention("GOVERNANCE", 4), Retention("GOVERNANCE", 3), True),
        (Retention("GOVERNANCE", 4), Retention("COMPLIANCE", 3), True),
        (None, Retention("COMPLIANCE", 3), True),
    ],
)
async def test_a_retention_in_compliance_mode_is_never_weakened(
    current: Retention | None, desired: Retention | None, *, is_allowed: bool
) -> None:
    calls = Calls()
    change = apply_lock(cast("Bucket", calls), Lock(is_enabled=True, retention=current), desired)

    if is_allowed:
        await change
    else:
        with pytest.raises(ExtensionError, match=r"the bucket has compliance for 96h: in compl"):
            await change
    assert calls.calls == (["PutObjectLockConfiguration"] if is_allowed else [])
