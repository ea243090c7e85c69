"""The BackupBucket and the BackupEntry of a Garden, and the Secret of its etcd (spec 20 §15.1)."""

import base64
from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key, annotations_of, metadata_of, name_of, namespace_of
from pergola.garden.components.etcds import backups
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.operator.reconcile.extension_resources import backup
from pergola.operator.reconcile.extension_resources.inputs import CHECKSUM
from tests.support.garden import BACKED_UP, GARDEN, landscape

UID = GARDEN["metadata"]["uid"]
SERVED: JsonObject = {
    "metadata": {"name": "provider-local"},
    "spec": {
        "resources": [
            {"kind": "BackupBucket", "type": "local"},
            {"kind": "BackupEntry", "type": "local"},
        ]
    },
}


def backed_up(**fields: object) -> JsonObject:
    changed: JsonObject = {"spec": {"virtualCluster": {"etcd": {"main": {"backup": fields}}}}}
    return changed


def site(*patches: JsonObject, **attributes: Any) -> Landscape:
    return landscape(BACKED_UP, *patches, **{"extensions": (SERVED,), **attributes})


def bucket_with(**status: object) -> JsonObject:
    return {**backup.backup_bucket(site()), "status": status}


def generated_in(namespace: str) -> JsonObject:
    return bucket_with(generatedSecretRef={"name": "generated", "namespace": namespace})


def test_without_a_backup_there_is_no_bucket_and_no_entry() -> None:
    reason = "spec.virtualCluster.etcd.main.backup is not set"
    assert backups.bucket_absent(landscape()) == reason
    assert backups.entry_absent(landscape()) == reason


def test_the_bucket_is_cluster_scoped_and_named_after_the_bucket() -> None:
    bucket = backup.backup_bucket(site(backed_up(bucketName="here/a/path")))
    assert (namespace_of(bucket), name_of(bucket)) == ("", "here")
    assert bucket["spec"] == {
        "class": "garden",
        "type": "local",
        "region": "local",
        "secretRef": {"name": "backup", "namespace": "garden"},
    }


def test_a_bucket_without_a_name_is_named_after_the_garden() -> None:
    bucket = backup.backup_bucket(site(backed_up(bucketName=None)))
    assert name_of(bucket) == f"garden-{UID}"


def test_the_region_defaults_to_that_of_the_runtime_cluster() -> None:
    runtime = {"spec": {"runtimeCluster": {"provider": {"region": "north"}}}}
    assert backup.backup_bucket(site(runtime))["spec"]["region"] == "local"
    without = backed_up(region=None)
    assert backup.backup_bucket(site(runtime, without))["spec"]["region"] == "north"
    with pytest.raises(OperatorError, match=r"set spec\.virtualCluster\.etcd\.main"):
        backup.backup_bucket(site(without))


def test_the_name_of_the_entry_contains_the_namespace_of_the_etcd() -> None:
    entry = backup.backup_entry(site(), bucket_with(), ())
    assert (namespace_of(entry), name_of(entry)) == ("", f"garden--{UID}")
    assert entry["spec"] == {
        "class": "garden",
        "type": "local",
        "region": "local",
        "bucketName": "bucket",
        "secretRef": {"name": "backup", "namespace": "garden"},
    }


def test_the_entry_has_the_generated_credentials_and_the_status_of_the_bucket() -> None:
    bucket = bucket_with(
        generatedSecretRef={"name": "generated", "namespace": "elsewhere"},
        providerStatus={"account": "a", "empty": None},
    )
    spec = backup.backup_entry(site(), bucket, ())["spec"]
    assert spec["secretRef"] == {"name": "generated", "namespace": "elsewhere"}
    assert spec["backupBucketProviderStatus"] == {"account": "a"}


def test_configuration_of_the_provider_is_passed_on() -> None:
    found = site(backed_up(providerConfig={"kind": "Config", "nothing": None}))
    assert backup.backup_bucket(found)["spec"]["providerConfig"] == {"kind": "Config"}
    entry = backup.backup_entry(found, backup.backup_bucket(found), ())
    assert entry["spec"]["providerConfig"] == {"kind": "Config"}


def test_an_existing_bucket_is_used_without_an_extension() -> None:
    reason = backups.bucket_absent(site(extensions=()))
    assert reason == (
        "spec.virtualCluster.etcd.main.backup names the bucket, and no Extension serves "
        "BackupBucket/local"
    )
    assert backups.entry_absent(site(extensions=())) == reason
    assert backups.bucket_absent(site(backed_up(bucketName=None), extensions=())) is None


def test_without_the_gate_there_is_a_bucket_but_no_entry() -> None:
    found = site(feature_gates={"BackupEntryForGarden": False})
    assert backups.bucket_absent(found) is None
    assert backups.entry_absent(found) == "the feature gate BackupEntryForGarden is off"


def test_a_dry_run_assumes_the_secret_of_the_entry_before_it_exists() -> None:
    assert backups.expected_secret(site()) == "etcd-backup"
    assert backups.expected_secret(site(feature_gates={"BackupEntryForGarden": False})) == ""
    assert backups.expected_secret(landscape()) == ""


def test_without_an_entry_the_etcd_uses_the_generated_secret_or_that_of_the_garden() -> None:
    assert backups.etcd_secret(bucket_with()) == ""
    assert backups.etcd_secret(generated_in("garden")) == "generated"


def test_a_generated_secret_in_another_namespace_is_an_error_with_advice() -> None:
    with pytest.raises(OperatorError, match="elsewhere/generated, but the etcd needs one in"):
        backups.etcd_secret(generated_in("elsewhere"))


def test_changed_credentials_change_the_bucket() -> None:
    checksums = set()
    for text in (b"one", b"two"):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "backup", "namespace": "garden"},
            "data": {"key": base64.b64encode(text).decode()},
        }
        found = site(references={("Secret", Key("garden", "backup")): secret})
        checksums.add(annotations_of(backup.backup_bucket(found))[CHECKSUM])
    assert len(checksums) == 2
    assert "annotations" not in metadata_of(backup.backup_bucket(site()))
