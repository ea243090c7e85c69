"""The etcds of the virtual cluster (spec 20 §15.1)."""

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.components.etcds import schedules
from pergola.garden.components.etcds.access import ROLES
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.kube.patches import apply_merge_patch
from tests.support.garden import BACKED_UP, GARDEN, HIGHLY_AVAILABLE, landscape

MAIN, EVENTS = "virtual-garden-etcd-main", "virtual-garden-etcd-events"


def etcd(name: str, *patches: JsonObject, **attributes: Any) -> JsonObject:
    rendered = ETCDS.objects(landscape(*patches, **attributes)).direct
    [found] = [obj for obj in rendered if obj["kind"] == "Etcd" and name_of(obj) == name]
    return map_at(found, "spec")


def in_etcd(role: str, **fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"etcd": {role: fields}}}}


def window(begin: str, end: str) -> JsonObject:
    return {
        "spec": {"virtualCluster": {"maintenance": {"timeWindow": {"begin": begin, "end": end}}}}
    }


@pytest.mark.parametrize("name", [MAIN, EVENTS])
def test_high_availability_adds_members_that_know_each_other(name: str) -> None:
    single, several = etcd(name), etcd(name, HIGHLY_AVAILABLE)
    assert (single["replicas"], several["replicas"]) == (1, 3)
    assert "peerUrlTls" not in single["etcd"]
    assert several["etcd"]["peerUrlTls"]["serverTLSSecretRef"]["name"].startswith(
        "etcd-peer-server"
    )


def test_a_single_main_etcd_is_not_evicted_to_save_a_node() -> None:
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    assert etcd(MAIN)["annotations"] == {key: "false"}
    assert "annotations" not in etcd(MAIN, HIGHLY_AVAILABLE)
    assert "annotations" not in etcd(EVENTS)


def test_claims_have_the_names_of_an_existing_landscape() -> None:
    assert etcd(MAIN)["volumeClaimTemplate"] == "main-virtual-garden-etcd"
    assert etcd(EVENTS)["volumeClaimTemplate"] == "virtual-garden-etcd-events"


def test_without_a_backup_nothing_is_stored() -> None:
    assert map_at(etcd(MAIN), "backup").keys().isdisjoint({"store", "fullSnapshotSchedule"})


def test_only_the_main_etcd_is_backed_up() -> None:
    backup = map_at(etcd(MAIN, BACKED_UP, backup_secret="etcd-backup"), "backup")
    assert backup["store"] == {
        "provider": "local",
        "container": "bucket",
        "prefix": "virtual-garden-etcd-main/etcd-main",
        "secretRef": {"name": "etcd-backup"},
    }
    assert "store" not in map_at(etcd(EVENTS, BACKED_UP), "backup")


@pytest.mark.parametrize(
    ("bucket", "container", "prefix"),
    [
        ("bucket/a/b", "bucket", "a/b/virtual-garden-etcd-main/etcd-main"),
        ("bucket/", "bucket", "virtual-garden-etcd-main/etcd-main"),
        (None, f"garden-{GARDEN['metadata']['uid']}", "virtual-garden-etcd-main/etcd-main"),
    ],
)
def test_a_bucket_may_have_a_prefix_or_no_name(
    bucket: str | None, container: str, prefix: str
) -> None:
    named = in_etcd("main", backup={"bucketName": bucket})
    store = map_at(etcd(MAIN, BACKED_UP, named), "backup", "store")
    assert (store["container"], store["prefix"]) == (container, prefix)


def test_the_secret_of_the_garden_is_used_unless_an_extension_generates_one() -> None:
    assert map_at(etcd(MAIN, BACKED_UP), "backup", "store")["secretRef"] == {"name": "backup"}


def test_settings_of_the_operator_apply_to_the_backup() -> None:
    config = {
        "deltaSnapshotRetentionPeriod": "24h",
        "backupLeaderElection": {"reelectionPeriod": "5s"},
    }
    backup = map_at(etcd(MAIN, BACKED_UP, etcd_config=config), "backup")
    assert backup["deltaSnapshotRetentionPeriod"] == "24h"
    assert backup["leaderElection"] == {"reelectionPeriod": "5s"}


@pytest.mark.parametrize(
    ("minimum", "chosen", "expected"),
    [
        (None, None, "25Gi"),
        ("50Gi", None, "50Gi"),
        ("20Gi", None, "25Gi"),
        ("50Gi", "30Gi", "50Gi"),
        (None, "30Gi", "30Gi"),
    ],
)
def test_a_volume_has_at_least_the_minimum_size_of_the_runtime_cluster(
    minimum: str | None, chosen: str | None, expected: str
) -> None:
    patches: list[JsonObject] = []
    if minimum:
        patches.append({"spec": {"runtimeCluster": {"volume": {"minimumSize": minimum}}}})
    if chosen:
        patches.append(in_etcd("main", storage={"capacity": chosen}))
    assert etcd(MAIN, *patches)["storageCapacity"] == expected


def test_a_storage_class_is_named_only_if_the_garden_does() -> None:
    assert "storageClass" not in etcd(MAIN)
    named = in_etcd("main", storage={"className": "fast"})
    assert etcd(MAIN, named)["storageClass"] == "fast"


def test_the_events_etcd_is_scaled_down_only_in_the_maintenance_window() -> None:
    rendered = ETCDS.objects(landscape()).direct
    found = {
        name_of(obj): map_at(obj, "metadata", "annotations")
        for obj in rendered
        if obj["kind"] == "VerticalPodAutoscaler"
    }
    key = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
    assert found[MAIN] == {key: "never"}
    assert found[EVENTS][key] == "in-maintenance-window-only"
    assert found[EVENTS]["shoot.gardener.cloud/maintenance-window"] == "220000+0100,230000+0100"


hours = st.integers(0, 23)
offsets = st.integers(-12, 14)


@given(begin=hours, length=st.integers(1, 22), offset=offsets, uid=st.uuids())
def test_defragmentation_is_inside_the_window_and_snapshots_end_before_it(
    begin: int, length: int, offset: int, uid: Any
) -> None:
    zone = f"{'-' if offset < 0 else '+'}{abs(offset):02}00"
    times = window(f"{begin:02}0000{zone}", f"{(begin + length) % 24:02}0000{zone}")
    garden = garden_from(apply_merge_patch(GARDEN, times | {"metadata": {"uid": str(uid)}}))
    start = (begin - offset) * 60
    defragmentation = schedules.defragmentation(garden)
    since = (defragmentation.hour * 60 + defragmentation.minute - start) % 1440
    assert since < length * 60
    snapshot = schedules.full_snapshot(garden)
    until = (start - snapshot.hour * 60 - snapshot.minute) % 1440
    assert 15 < until <= 75


@pytest.mark.parametrize(
    ("begin", "end"), [("000000+0000", "000000+0000"), ("000000+0000", "235959+0000")]
)
def test_with_an_always_open_window_the_time_of_creation_is_used(begin: str, end: str) -> None:
    garden = garden_from(apply_merge_patch(GARDEN, window(begin, end)))
    assert schedules.defragmentation(garden) == schedules.full_snapshot(garden) == (12, 34)


def test_a_window_of_almost_a_whole_day_is_no_exception() -> None:
    garden = garden_from(apply_merge_patch(GARDEN, window("220000+0000", "215900+0000")))
    assert schedules.full_snapshot(garden) != (12, 34)


def test_a_window_of_seconds_begins_in_its_minute() -> None:
    garden = garden_from(apply_merge_patch(GARDEN, window("220001+0000", "220030+0000")))
    assert schedules.defragmentation(garden) == (22, 0)


def test_seconds_count_for_the_length_of_a_window() -> None:
    # The original divides the checksum by 4 minutes, not 5.
    garden = garden_from(
        apply_merge_patch(GARDEN, window("220059+0000", "220500+0000") | {"metadata": {"uid": "1"}})
    )
    assert schedules.defragmentation(garden) == (22, zlib.crc32(b"1") % 4)


def test_every_role_has_its_own_objects() -> None:
    rendered = ETCDS.objects(landscape()).direct
    assert len(rendered) == 3 * len(ROLES)
