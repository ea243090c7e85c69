"""Classes, identity, triggers and entry decisions: spec 10 §1, §3, §4.1 and §4.2."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import Key, annotations_of, finalizers_of, labels_of
from pergola.kube.errors import NotFound
from pergola.runtime.clock import FakeClock, monotonic
from pergola.testing.world import World, condition, has, is_applied

# §1


@pytest.mark.parametrize(("value", "survives"), [("T", True), ("yes", False)])
async def test_only_the_spellings_of_gos_parser_ignore_an_object(
    world: World, value: str, survives: bool
) -> None:
    greeting = world.config_map("greeting", text="hello")
    greeting["metadata"]["annotations"] = {marks.IGNORE: value}
    await world.start()
    await world.create("demo", greeting)
    await world.applied("demo")

    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"text": "bye"}})
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))
    await world.settled()

    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    assert live["data"] == {"text": "bye" if survives else "hello"}


@pytest.mark.in_cluster
async def test_an_invalid_grace_period_keeps_the_deletion_pending(
    world: World,
) -> None:
    stuck = world.config_map("stuck")
    stuck["metadata"] |= {
        "annotations": {marks.FINALIZE_DELETION_AFTER: "1d"},
        "finalizers": ["example.org/stuck"],
    }
    await world.create("demo", stuck)
    await world.applied("demo")
    await world.put_secret("demo")
    await world.put_data("demo", {})

    pending = await world.until("demo", has("ResourcesApplied", "Progressing", "DeletionPending"))
    pending = await world.until("demo", lambda r: "1d" in str(r["status"]["conditions"]))
    assert marks.FINALIZE_DELETION_AFTER in str(pending["status"]["conditions"])
    live = await world.client.get(CONFIG_MAP, world.key("stuck"))
    assert finalizers_of(live) == ["example.org/stuck"]
    await world.client.patch(CONFIG_MAP, world.key("stuck"), {"metadata": {"finalizers": None}})


async def test_an_applied_object_carries_description_origin_and_label(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.applied("demo")

    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    assert annotations_of(live) == {
        marks.DESCRIPTION: marks.DESCRIPTION_TEXT,
        marks.ORIGIN: f"{world.namespace}/demo",
    }
    assert labels_of(live) == {marks.MANAGED_BY: "gardener"}


# §3


async def test_a_resource_of_another_class_is_never_touched(world: World) -> None:
    await world.start(resource_class="seed")
    before = await world.create("demo", world.config_map("greeting"))
    await world.create("ours", world.config_map("other"), **{"class": "seed"})
    await world.applied("ours")
    await world.settled()
    assert await world.resource("demo") == before


@pytest.mark.in_cluster
async def test_an_empty_class_is_the_default_class(world: World) -> None:
    await world.create("demo", world.config_map("greeting"), **{"class": ""})
    await world.applied("demo")


async def test_a_change_of_the_class_takes_effect_once_the_former_instance_is_done(
    world: World,
) -> None:
    other = f"{marks.FINALIZER}-test"
    await world.put_secret("demo", world.config_map("greeting"))
    await world.create_resource("demo", ["demo"], {"finalizers": [other]}, **{"class": "test"})
    await world.start()
    await world.edit("demo", {"spec": {"class": "resources"}})
    await world.settled()
    waiting = await world.resource("demo")
    assert finalizers_of(waiting) == [other]
    assert not await world.exists(CONFIG_MAP, "greeting")

    await world.edit("demo", {"metadata": {"finalizers": None}})
    done = await world.applied("demo")
    assert finalizers_of(done) == [marks.FINALIZER]


@pytest.mark.parametrize("keep", [True, False])
async def test_the_former_instance_cleans_up_unless_objects_are_kept(
    world: World, keep: bool
) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"), keepObjects=keep)
    await world.applied("demo")
    await world.edit("demo", {"spec": {"class": "other"}})
    await world.until("demo", lambda r: not finalizers_of(r))
    assert await world.exists(CONFIG_MAP, "greeting") is keep


async def test_a_handover_keeps_objects_that_another_resource_adopted(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"))
    await world.applied("demo")
    await world.stop()
    of_another: dict[str, Any] = {"class": "other"}
    await world.create_resource("other", [], **of_another)
    adopted = {marks.ORIGIN: f"{world.namespace}/other"}
    await world.client.patch(
        CONFIG_MAP, world.key("greeting"), {"metadata": {"annotations": adopted}}
    )
    await world.edit("demo", {"spec": {"class": "other"}})
    await world.start()
    await world.until("demo", lambda r: not finalizers_of(r))
    assert await world.exists(CONFIG_MAP, "greeting")


async def test_the_cluster_id_is_the_prefix_of_the_origin(world: World) -> None:
    await world.start(cluster_id="c1")
    await world.create("demo", world.config_map("greeting"))
    await world.applied("demo")
    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    assert annotations_of(live)[marks.ORIGIN] == f"c1:{world.namespace}/demo"


# §4.2


async def test_an_ignored_resource_is_left_alone_until_the_annotation_is_removed(
    world: World,
) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.applied("demo")
    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: "true"}}})
    ignored = await world.until("demo", has("ResourcesApplied", "True", "ManagedResourceIgnored"))
    assert condition(ignored, "ResourcesHealthy") == ("True", "ManagedResourceIgnored")
    assert condition(ignored, "ResourcesProgressing") == ("False", "ManagedResourceIgnored")

    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"text": "bye"}})
    await world.put_secret("demo", world.config_map("greeting", text="changed"))
    await world.settled()
    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    assert live["data"] == {"text": "bye"}

    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: None}}})
    await world.until_object(
        CONFIG_MAP, world.key("greeting"), lambda o: o["data"] == {"text": "changed"}
    )
    await world.until("demo", has("ResourcesApplied", "True", "ApplySucceeded"))


async def test_the_reconcile_operation_is_removed_and_reverts_edits(world: World) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.applied("demo")
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))


async def test_wait_for_state_changes_neither_objects_nor_status(world: World) -> None:
    await world.put_secret("demo", world.config_map("greeting"))
    metadata = {"annotations": {marks.OPERATION: "wait-for-state"}}
    before = await world.create_resource("demo", ["demo"], metadata)
    await world.start()
    await world.create("other", world.config_map("other"))
    await world.applied("other")
    await world.settled()
    assert await world.resource("demo") == before
    assert not await world.exists(CONFIG_MAP, "greeting")


async def test_a_changed_secret_triggers_only_resources_that_name_it(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.create("other", world.config_map("other"))
    await world.applied("demo")
    await world.applied("other")
    await world.settled()
    world.recorder.taken()

    await world.put_secret("demo", world.config_map("greeting", text="changed"))
    await world.until_object(
        CONFIG_MAP, world.key("greeting"), lambda o: o["data"] == {"text": "changed"}
    )
    await world.healthy("demo")
    await world.settled()
    assert {write.split("/")[-1] for write in world.recorder.taken()} == {"demo", "greeting"}

    await world.client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "unreferenced", "namespace": world.namespace},
        }
    )
    await world.client.patch(SECRET, world.key("unreferenced"), {"stringData": {"a": "b"}})
    await world.settled()
    assert world.recorder.taken() == []


@pytest.mark.in_cluster
async def test_a_secret_that_is_created_late_is_read_at_once(world: World) -> None:
    await world.create_resource("demo", ["late"])
    await world.until("demo", has("ResourcesApplied", "False", "CannotReadSecret"))
    await world.put_secret("late", world.config_map("greeting"))
    await world.until("demo", is_applied)


async def test_a_failing_resource_backs_off_and_does_not_delay_others(world: World) -> None:
    began = monotonic()
    await world.start()
    await world.create("bad", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "_"}})
    await world.until("bad", has("ResourcesApplied", "False", "ApplyFailed"))
    for number in range(3):
        await world.create(f"good-{number}", world.config_map(f"good-{number}"))
        await world.applied(f"good-{number}")
    bad = [w for w in world.recorder.taken() if w == "create ConfigMap default/_"]
    # 5 ms, doubled at each failure: fewer than 14 attempts in the first half minute.
    assert len(bad) <= 2 + math.log2(1 + (monotonic() - began) / 0.005)


# §4.6, with time


async def test_a_stuck_finalizer_is_stripped_after_its_grace_period_and_not_before(
    world: World,
) -> None:
    now = datetime.now(UTC)
    clock = FakeClock(now)
    stuck = world.config_map("stuck")
    stuck["metadata"] |= {
        "annotations": {marks.FINALIZE_DELETION_AFTER: "1h"},
        "finalizers": ["example.org/stuck"],
    }
    await world.start(clock=clock)
    await world.create("demo", stuck)
    await world.applied("demo")
    await world.delete("demo")
    live = await world.until_object(
        CONFIG_MAP, world.key("stuck"), lambda o: "deletionTimestamp" in o["metadata"]
    )
    deleted = datetime.fromisoformat(live["metadata"]["deletionTimestamp"])

    clock.set(deleted + timedelta(minutes=59, seconds=59))
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))
    await world.settled()
    assert await world.exists(CONFIG_MAP, "stuck")

    clock.set(deleted + timedelta(hours=1))
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until_gone(CONFIG_MAP, world.key("stuck"))
    with pytest.raises(NotFound):
        await world.client.get(CONFIG_MAP, Key(world.namespace, "stuck"))
