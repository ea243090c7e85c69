"""The configuration of a backup bucket."""

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.providers.aws.backup.config import BACKUP_BUCKET_CONFIG, retention_of
from pergola.providers.aws.resources.bucket.lock import Retention

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

    with pytest.raises(Malformed, match=rf"spec.providerConfig.immutability.{missing}"):
        retention_of(bucket(**rest))
