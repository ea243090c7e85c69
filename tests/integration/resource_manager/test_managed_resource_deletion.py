"""Deleting and releasing objects, deleting ManagedResources: spec 10 §4.6, §4.7 and §4.10."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from pergola.api import marks
from pergola.api.kinds import (
    CONFIG_MAP,
    CRON_JOB,
    JOB,
    NAMESPACE,
    PVC,
    SECRET,
    SERVICE,
    STATEFUL_SET,
)
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    labels_of,
    maps_at,
    name_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.runtime.clock import FakeClock
from pergola.testing.world import World, condition, has, is_applied, message
from tests.support.documented.symptoms import symptom
from tests.support.objects import warning

STUCK = "example.org/stuck"


def names(resource: JsonObject) -> list[str]:
    """Return the names of objects in the status of a ManagedResource."""
    return [reference["name"] for reference in maps_at(resource, "status", "resources")]


async def unblock(world: World, name: str) -> None:
    """Remove the finalizers of a ConfigMap."""
    await world.client.patch(CONFIG_MAP, world.key(name), {"metadata": {"finalizers": None}})


@pytest.mark.in_cluster
async def test_an_object_removed_from_the_secret_is_deleted_and_then_removed_from_the_status(
    world: World,
) -> None:
    leaving = world.config_map("b")
    leaving["metadata"]["finalizers"] = [STUCK]
    await world.create("demo", world.config_map("a"), leaving)
    await world.healthy("demo")
    await world.put_secret("demo", world.config_map("a"))
    pending = await world.until("demo", has("ResourcesApplied", "Progressing", "DeletionPending"))
    assert names(pending) == ["a", "b"]
    await unblock(world, "b")
    done = await world.applied("demo")
    assert names(done) == ["a"]
    assert await world.exists(CONFIG_MAP, "a")
    assert not await world.exists(CONFIG_MAP, "b")


async def test_an_object_that_was_recreated_after_it_was_read_is_not_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new object has the annotation that keeps it, which only the next run reads."""
    again = world.config_map("b")
    again["metadata"]["annotations"] = {marks.KEEP_OBJECT: "true"}
    delete, overtaken = world.recorder.delete, asyncio.Event()

    async def recreate_first(gvk: GroupVersionKind, key: Key, **options: str) -> bool:
        if key == world.key("b") and not overtaken.is_set():
            overtaken.set()
            await world.client.delete(gvk, key)
            await world.client.create(again)
        return await delete(gvk, key, **options)

    monkeypatch.setattr(world.recorder, "delete", recreate_first)
    await world.start()
    await world.create("demo", world.config_map("a"), world.config_map("b"))
    await world.healthy("demo")
    await world.put_secret("demo", world.config_map("a"))

    await world.until("demo", lambda r: is_applied(r) and names(r) == ["a"])
    assert overtaken.is_set()
    assert await world.exists(CONFIG_MAP, "b")


async def test_no_new_object_is_created_while_the_deletion_of_an_old_one_is_pending(
    world: World,
) -> None:
    leaving = world.config_map("b")
    leaving["metadata"]["finalizers"] = [STUCK]
    await world.start()
    await world.create("demo", leaving)
    await world.healthy("demo")
    await world.put_secret("demo", world.config_map("c"))
    pending = await world.until("demo", lambda r: STUCK in message(r, "ResourcesApplied"))
    assert condition(pending, "ResourcesApplied") == ("Progressing", "DeletionPending")
    assert condition(pending, "ResourcesHealthy") == ("Unknown", "ChecksPending")
    assert condition(pending, "ResourcesProgressing") == ("Unknown", "ChecksPending")
    expected = f'"v1/ConfigMap/{world.namespace}/b"'
    assert expected in message(pending, "ResourcesApplied")
    assert message(pending, "ResourcesApplied").startswith(
        "Could not clean all old resources: 1 error occurred: "
    )
    await world.settled()
    assert not await world.exists(CONFIG_MAP, "c")
    await unblock(world, "b")
    await world.until_object(CONFIG_MAP, world.key("c"), lambda _: True)
    assert not await world.exists(CONFIG_MAP, "b")


@pytest.mark.in_cluster
async def test_the_annotation_keep_object_on_a_live_object_keeps_it(world: World) -> None:
    await world.create("demo", world.config_map("a"), world.config_map("b"))
    await world.healthy("demo")
    for name in "ab":
        await world.client.patch(
            CONFIG_MAP,
            world.key(name),
            {"metadata": {"annotations": {marks.KEEP_OBJECT: "true"}}},
        )
    await world.put_secret("demo", world.config_map("a"))
    await world.until("demo", lambda r: is_applied(r) and names(r) == ["a"])
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert await world.exists(CONFIG_MAP, "a")
    assert await world.exists(CONFIG_MAP, "b")


@pytest.mark.parametrize("collects", [True, False])
async def test_labelled_garbage_is_left_to_the_collector_if_there_is_one(
    world: World, collects: bool
) -> None:
    labels = {marks.GARBAGE_COLLECTABLE: "true"}
    await world.start(collects_garbage=collects, target_namespaces=(world.namespace,))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "role", "namespace": world.namespace, "labels": labels},
    }
    await world.create("demo", world.config_map("garbage", labels=labels), role)
    await world.healthy("demo")
    await world.put_data("demo", {})
    await world.until("demo", lambda r: is_applied(r) and names(r) == [])
    assert await world.exists(CONFIG_MAP, "garbage") is collects
    assert not await world.exists(
        GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role"), "role"
    )


async def test_the_jobs_of_a_cron_job_are_deleted_with_it(world: World) -> None:
    template = {
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "registry.example/c:1"}],
                }
            }
        }
    }
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "cron", "namespace": world.namespace},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template},
    }
    await world.start()
    await world.create("demo", cron_job)
    await world.applied("demo")
    live = await world.client.get(CRON_JOB, world.key("cron"))
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "cron",
        "uid": live["metadata"]["uid"],
        "blockOwnerDeletion": True,
        "controller": True,
    }
    await world.client.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "run",
                "namespace": world.namespace,
                "ownerReferences": [owner],
            },
            "spec": {**template["spec"], "suspend": True},
        }
    )
    await world.put_data("demo", {})
    await world.until("demo", lambda r: is_applied(r) and names(r) == [])
    assert not await world.exists(JOB, "run")
    assert not await world.exists(CRON_JOB, "cron")


async def test_a_stuck_namespace_is_finalized_after_its_grace_period(world: World) -> None:
    name = f"{world.namespace}-stuck"
    stuck = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "annotations": {marks.FINALIZE_DELETION_AFTER: "1h"},
            "finalizers": [STUCK],
        },
    }
    clock = FakeClock(datetime.now(UTC))
    await world.start(clock=clock)
    await world.create("demo", stuck)
    await world.applied("demo")
    await world.delete("demo")
    await world.until_object(
        NAMESPACE,
        Key("", name),
        lambda o: any(
            c["type"] == "NamespaceContentRemaining" and c["status"] == "False"
            for c in maps_at(o, "status", "conditions")
        ),
    )
    clock.set(datetime.now(UTC) + timedelta(hours=1))
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until_gone(NAMESPACE, Key("", name))
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))


@pytest.mark.parametrize("claims", [True, False])
async def test_only_claims_of_the_stateful_set_are_deleted_and_only_on_request(
    world: World, claims: bool
) -> None:
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": world.namespace},
        "spec": {
            "replicas": 0,
            "serviceName": "db",
            "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "registry.example/db:1"}]},
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
    }
    await world.start()
    await world.create("demo", stateful_set, deletePersistentVolumeClaims=claims)
    await world.applied("demo")
    for name, app in (("data-db-0", "db"), ("data-db-x", "db"), ("data-db-1", "other")):
        await world.client.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": world.namespace,
                    "labels": {"app": app},
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        )
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    if claims:
        await world.until_gone(PVC, world.key("data-db-0"))
    left = {name_of(c) for c in await world.client.list(PVC, world.namespace)}
    assert left == {"data-db-x", "data-db-1"} | (set() if claims else {"data-db-0"})
    assert not await world.exists(STATEFUL_SET, "db")


# §4.7


def with_mode(obj: JsonObject) -> JsonObject:
    """Return the object with the mode that releases it."""
    obj["metadata"]["annotations"] = {marks.MODE: "Ignore"}
    return obj


@pytest.mark.in_cluster
async def test_a_new_object_in_mode_ignore_is_neither_created_nor_listed(world: World) -> None:
    await world.create("demo", with_mode(world.config_map("a")), world.config_map("b"))
    assert names(await world.applied("demo")) == ["b"]
    assert not await world.exists(CONFIG_MAP, "a")


@pytest.mark.in_cluster
async def test_a_managed_object_that_gets_mode_ignore_is_released(world: World) -> None:
    await world.create("demo", world.config_map("a", text="hello"), world.config_map("b"))
    await world.healthy("demo")
    await world.put_secret("demo", with_mode(world.config_map("a")), world.config_map("b"))
    await world.until("demo", lambda r: is_applied(r) and names(r) == ["b"])
    live = await world.client.get(CONFIG_MAP, world.key("a"))
    assert annotations_of(live) == {}
    assert labels_of(live) == {marks.MANAGED_BY: "gardener"}
    assert live["data"] == {"text": "hello"}
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert await world.exists(CONFIG_MAP, "a")


async def test_an_object_that_another_resource_adopted_is_not_touched(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    await world.stop()
    taken = {"metadata": {"annotations": {marks.ORIGIN: f"{world.namespace}/other"}}}
    adopted = await world.client.patch(CONFIG_MAP, world.key("a"), taken)
    await world.put_secret("demo", with_mode(world.config_map("a")))
    await world.start()
    await world.until("demo", lambda r: is_applied(r) and names(r) == [])
    assert await world.client.get(CONFIG_MAP, world.key("a")) == adopted


@pytest.mark.parametrize("other", ["c2:", ""])
async def test_an_object_of_the_namesake_of_another_cluster_is_kept(
    world: World, other: str
) -> None:
    await world.start(cluster_id="c1")
    await world.create("demo", world.config_map("a"), world.config_map("b"))
    await world.healthy("demo")
    await world.stop()
    taken = {"metadata": {"annotations": {marks.ORIGIN: f"{other}{world.namespace}/demo"}}}
    await world.client.patch(CONFIG_MAP, world.key("a"), taken)
    await world.delete("demo")
    await world.start(cluster_id="c1")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert await world.exists(CONFIG_MAP, "a")
    assert not await world.exists(CONFIG_MAP, "b")


# §4.10


@pytest.mark.in_cluster
async def test_an_ignored_resource_still_deletes_its_objects(world: World) -> None:
    await world.create("demo", world.config_map("a"))
    await world.applied("demo")
    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: "true"}}})
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert not await world.exists(CONFIG_MAP, "a")


@pytest.mark.in_cluster
async def test_objects_are_deleted_even_if_the_secret_was_deleted_first(world: World) -> None:
    await world.create("demo", world.config_map("a"))
    await world.applied("demo")
    await world.client.delete(SECRET, world.key("demo"))
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert not await world.exists(CONFIG_MAP, "a")


@pytest.mark.in_cluster
async def test_kept_objects_are_not_changed(world: World) -> None:
    await world.create("demo", world.config_map("a"), keepObjects=True)
    await world.applied("demo")
    before = await world.client.get(CONFIG_MAP, world.key("a"))
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert await world.client.get(CONFIG_MAP, world.key("a")) == before


@pytest.mark.in_cluster
async def test_during_a_deletion_a_foreign_finalizer_keeps_the_conditions(world: World) -> None:
    await world.put_secret("demo", world.config_map("a"))
    await world.create_resource("demo", ["demo"], {"finalizers": [STUCK]})
    await world.applied("demo")
    await world.delete("demo")
    left = await world.until("demo", lambda r: finalizers_of(r) == [STUCK])
    assert condition(left, "ResourcesApplied") == ("Progressing", "DeletionPending")
    assert condition(left, "ResourcesHealthy") == ("False", "DeletionPending")
    assert condition(left, "ResourcesProgressing") == ("True", "DeletionPending")
    await world.edit("demo", {"metadata": {"finalizers": None}})


@pytest.mark.in_cluster
async def test_an_object_with_a_blocked_deletion_is_named_and_keeps_the_finalizer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In this process, only the watch reports that the object is gone.
    for module in ("deletion", "reconcile"):
        name = f"pergola.resource_manager.controllers.managed_resource.{module}.RETRY_SECONDS"
        monkeypatch.setattr(name, 3600.0)
    stuck = world.config_map("a")
    stuck["metadata"]["finalizers"] = [STUCK]
    await world.create("demo", stuck)
    await world.applied("demo")
    await world.delete("demo")
    pending = await world.until("demo", lambda r: STUCK in message(r, "ResourcesApplied"))
    assert f'"v1/ConfigMap/{world.namespace}/a"' in message(pending, "ResourcesApplied")
    assert re.search(symptom("A deletion does not end"), message(pending, "ResourcesApplied"))
    assert finalizers_of(pending) == [marks.FINALIZER]
    await unblock(world, "a")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))


async def test_the_newest_warnings_of_a_service_are_in_the_message(world: World) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": world.namespace, "finalizers": [STUCK]},
        # Headless: the API server reports and repairs addresses that it has just allocated.
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    }
    kind = SERVICE
    await world.start()
    await world.create("demo", service)
    await world.applied("demo")
    live = await world.client.get(kind, world.key("web"))
    await world.client.create(warning(live, "no address left"))
    await world.delete("demo")
    pending = await world.until(
        "demo", lambda r: "no address left" in message(r, "ResourcesApplied")
    )
    text = message(pending, "ResourcesApplied")
    assert "\n\n-> Events:\n* service-controller reported " in text
    await world.client.patch(kind, world.key("web"), {"metadata": {"finalizers": None}})
