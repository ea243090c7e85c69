"""Reasons for which an extension ignores an object (spec 40 Beyond 5)."""

from datetime import UTC, datetime

from pergola.api.objects import JsonObject
from pergola.extension_api.caller.symptoms import cluster_symptom, heartbeat_symptom, object_symptom
from pergola.extension_api.cluster import Cluster, Shoot

NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def lease(holder: str, renewed: str) -> JsonObject:
    return {
        "metadata": {"name": "gardener-extension-heartbeat", "namespace": f"extension-{holder}"},
        "spec": {"holderIdentity": holder, "renewTime": renewed},
    }


ALIVE = lease("networking-calico", "2026-03-01T09:59:45.000000Z")
DEAD = lease("networking-cilium", "2026-03-01T08:00:00.000000Z")


def test_a_running_extension_is_not_a_reason() -> None:
    assert heartbeat_symptom([DEAD, ALIVE], "calico", "", NOW) == ""
    assert heartbeat_symptom([ALIVE], "whatever", "networking-calico", NOW) == ""


def test_a_stopped_extension_is_reported_with_the_time() -> None:
    expected = "extension networking-cilium is not running since 2026-03-01T08:00:00Z"
    assert heartbeat_symptom([ALIVE, DEAD], "cilium", "", NOW) == expected


def test_one_running_extension_of_a_type_is_enough() -> None:
    old = lease("runtime-calico", "2026-03-01T08:00:00.000000Z")
    assert heartbeat_symptom([old, ALIVE], "calico", "", NOW) == ""


def test_a_missing_extension_is_reported_with_the_existing_ones() -> None:
    assert heartbeat_symptom([ALIVE, DEAD], "gardenet", "", NOW) == (
        "perhaps none of those that run serves type gardenet (they are networking-calico, "
        "networking-cilium)"
    )
    assert heartbeat_symptom([], "gardenet", "", NOW) == (
        "an extension for type gardenet has no heartbeat (seen: none): is it installed and running?"
    )
    assert "extension networking-x has no heartbeat (seen: none)" in heartbeat_symptom(
        [], "x", "networking-x", NOW
    )


def test_an_extension_may_serve_types_that_begin_with_its_own() -> None:
    aws = lease("provider-aws", "2026-03-01T09:59:45.000000Z")
    assert heartbeat_symptom([aws], "aws-route53", "", NOW) == ""
    assert "awsome" in heartbeat_symptom([aws], "awsome", "", NOW)


def test_a_missing_cluster_and_a_failed_shoot_are_reasons() -> None:
    assert "Cluster ns does not exist" in cluster_symptom(None, "ns", "Network")
    failed = Shoot({"status": {"lastOperation": {"state": "Failed"}}})
    of_failed = Cluster("ns", failed)
    assert "the Shoot in Cluster ns is Failed" in cluster_symptom(of_failed, "ns", "Network")
    assert cluster_symptom(of_failed, "ns", "Bastion") == ""
    assert cluster_symptom(Cluster("ns", Shoot({})), "ns", "Network") == ""


def test_a_migrated_object_without_a_restore_is_reported() -> None:
    migrated: JsonObject = {
        "status": {"lastOperation": {"type": "Migrate", "state": "Succeeded"}},
    }
    assert "it was migrated away" in object_symptom(migrated)
    restoring = {**migrated, "metadata": {"annotations": {"gardener.cloud/operation": "restore"}}}
    assert object_symptom(restoring) == ""
    waiting: JsonObject = {
        "metadata": {"annotations": {"gardener.cloud/operation": "wait-for-state"}}
    }
    assert "it waits for its state" in object_symptom(waiting)
    assert object_symptom({}) == ""
