"""Applying, finishing a run, merging and conditions: spec 10 §4.8, §4.9, §5 and §6."""

import re
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, POD, SERVICE, STATEFUL_SET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    labels_of,
    maps_at,
    uid_of,
)
from pergola.resource_manager.controllers.managed_resource.fights import BURST, INTERVAL_SECONDS
from pergola.runtime.clock import monotonic
from pergola.runtime.controlling import controller as controlling
from pergola.sandbox.node.configuration import PAUSE_IMAGE
from pergola.testing.crds import definition
from pergola.testing.namespaces import clear_namespace
from pergola.testing.world import World, condition, config_map, has, is_applied, is_ready, message
from tests.support.documented.symptoms import symptom
from tests.support.logs import captured_logs

ROLE_BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "RoleBinding")


def deployment(namespace: str, name: str = "web", **spec: Any) -> JsonObject:
    """Return a Deployment whose pods can run even on real nodes."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": PAUSE_IMAGE}]},
            },
            **spec,
        },
    }


def role_binding(namespace: str, role: str, **annotations: str) -> JsonObject:
    """Return a RoleBinding, whose roleRef is immutable."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "binding", "namespace": namespace, "annotations": annotations},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
    }


# §4.8


async def test_a_manual_edit_is_noticed_by_a_watch_and_reverted_with_one_write(
    world: World,
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    await world.settled()
    world.recorder.taken()
    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"text": "bye"}})
    await world.until_object(
        CONFIG_MAP, world.key("greeting"), lambda o: o["data"] == {"text": "hello"}
    )
    await world.settled()
    assert world.recorder.taken() == [f"update ConfigMap {world.key('greeting')}"]


async def test_two_writers_do_not_fight_at_full_speed(world: World) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    world.recorder.taken()
    began = monotonic()
    for number in range(30):
        await world.client.patch(
            CONFIG_MAP, world.key("greeting"), {"data": {"text": f"bye {number}"}}
        )
        await world.settled()
    repairs = [w for w in world.recorder.taken() if w.startswith("update ConfigMap")]
    spaced = (monotonic() - began) / INTERVAL_SECONDS
    assert 1 <= len(repairs) <= BURST + 1 + spaced


@pytest.mark.in_cluster
async def test_an_ignored_object_is_created_unchanged_and_deleted_like_any_other(
    world: World,
) -> None:
    seeded = world.config_map("seeded", text="hello")
    seeded["metadata"]["annotations"] = {marks.IGNORE: "true"}
    await world.create("demo", seeded, injectLabels={"a": "b"})
    await world.applied("demo")
    live = await world.client.get(CONFIG_MAP, world.key("seeded"))
    assert annotations_of(live) == {marks.IGNORE: "true"}
    assert labels_of(live) == {}
    await world.client.patch(CONFIG_MAP, world.key("seeded"), {"data": {"text": "bye"}})
    await world.put_secret("demo", seeded, world.config_map("other"))
    await world.until("demo", lambda r: is_applied(r) and len(r["status"]["resources"]) == 2)
    live = await world.client.get(CONFIG_MAP, world.key("seeded"))
    assert live["data"] == {"text": "bye"}
    await world.put_secret("demo", world.config_map("other"))
    await world.until_gone(CONFIG_MAP, world.key("seeded"))


@pytest.mark.in_cluster
async def test_a_definition_and_its_instance_can_be_applied_together(world: World) -> None:
    group = f"{world.namespace}.example.org"
    gadget = GroupVersionKind(group, "v1", "Gadget")
    instance = {
        "apiVersion": f"{group}/v1",
        "kind": "Gadget",
        "metadata": {"name": "gadget", "namespace": world.namespace},
        "spec": {"size": 1.0},
    }
    await world.create("demo", instance, definition(gadget))
    await world.healthy("demo")
    live = await world.client.get(gadget, world.key("gadget"))
    assert live["spec"] == {"size": 1}

    # The deletion of the kind is noticed and repaired without a restart.
    await world.client.delete(CRD, Key("", f"gadgets.{group}"))
    await world.until_object(gadget, world.key("gadget"), lambda _: True)
    await world.healthy("demo")
    await world.delete("demo")
    await world.until_gone(CRD, Key("", f"gadgets.{group}"))


async def test_an_object_waits_for_a_foreign_namespace_without_an_error(world: World) -> None:
    later = f"{world.namespace}-later"
    with captured_logs(controlling) as logs:
        await world.start()
        await world.create("demo", config_map("greeting", later))
        said = re.compile(symptom("A namespace is missing"))
        await world.until("demo", lambda r: bool(said.search(message(r, "ResourcesApplied"))))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": later}}
        await world.client.create(namespace)
        await world.applied("demo")
    missing = [line for line in logs if f'namespaces "{later}" not found' in str(line)]
    assert missing[0]["log_level"] == "info"
    await clear_namespace(world.client, later)


async def test_an_object_waits_for_a_foreign_kind_without_an_error(world: World) -> None:
    gadget = GroupVersionKind(f"{world.namespace}.example.org", "v1", "Gadget")
    instance = {
        "apiVersion": gadget.api_version,
        "kind": gadget.kind,
        "metadata": {"name": "gadget", "namespace": world.namespace},
    }
    with captured_logs(controlling) as logs:
        await world.start()
        await world.create("demo", instance)
        await world.until(
            "demo", lambda r: 'no matches for kind "Gadget"' in message(r, "ResourcesApplied")
        )
        await world.client.create(definition(gadget))
        await world.applied("demo")
    missing = [line for line in logs if 'no matches for kind "Gadget"' in str(line)]
    assert missing[0]["log_level"] == "info"
    await world.client.delete(CRD, Key("", f"gadgets.{gadget.group}"))


@pytest.mark.in_cluster
async def test_a_changed_immutable_config_map_is_recreated(world: World) -> None:
    first = {**world.config_map("fixed", text="hello"), "immutable": True}
    await world.create("demo", first)
    await world.applied("demo")
    uid = uid_of(await world.client.get(CONFIG_MAP, world.key("fixed")))
    await world.put_secret("demo", {**world.config_map("fixed", text="bye"), "immutable": True})
    await world.until_object(CONFIG_MAP, world.key("fixed"), lambda o: o["data"] == {"text": "bye"})
    await world.applied("demo")
    assert uid_of(await world.client.get(CONFIG_MAP, world.key("fixed"))) != uid


@pytest.mark.in_cluster
async def test_an_object_is_recreated_after_an_invalid_update_only_on_request(world: World) -> None:
    await world.create("demo", role_binding(world.namespace, "one"))
    await world.applied("demo")
    uid = uid_of(await world.client.get(ROLE_BINDING, world.key("binding")))

    await world.put_secret("demo", role_binding(world.namespace, "two"))
    failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    text = message(failed, "ResourcesApplied")
    name = f'"rbac.authorization.k8s.io/v1/RoleBinding/{world.namespace}/binding"'
    assert text.startswith(f"error during apply of object {name}: ")
    assert " is invalid:" in text
    assert uid_of(await world.client.get(ROLE_BINDING, world.key("binding"))) == uid

    asked = {marks.DELETE_ON_INVALID_UPDATE: "true"}
    await world.put_secret("demo", role_binding(world.namespace, "two", **asked))
    await world.applied("demo")
    live = await world.client.get(ROLE_BINDING, world.key("binding"))
    assert live["roleRef"]["name"] == "two"
    assert uid_of(live) != uid

    # A valid update does not recreate the object.
    await world.put_secret(
        "demo", role_binding(world.namespace, "two", **asked, **{"example.org/a": "b"})
    )
    await world.until_object(
        ROLE_BINDING, world.key("binding"), lambda o: "example.org/a" in annotations_of(o)
    )
    assert uid_of(await world.client.get(ROLE_BINDING, world.key("binding"))) == uid_of(live)


async def test_an_unknown_propagation_policy_is_refused_and_nothing_is_deleted(
    world: World,
) -> None:
    await world.start()
    await world.create("demo", role_binding(world.namespace, "one"))
    await world.applied("demo")
    uid = uid_of(await world.client.get(ROLE_BINDING, world.key("binding")))
    asked = {
        marks.DELETE_ON_INVALID_UPDATE: "true",
        marks.DELETION_PROPAGATION_ON_INVALID_UPDATE: "Sideways",
    }
    await world.put_secret("demo", role_binding(world.namespace, "two", **asked))
    failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    assert "Sideways" in message(failed, "ResourcesApplied")
    assert uid_of(await world.client.get(ROLE_BINDING, world.key("binding"))) == uid


@pytest.mark.in_cluster
async def test_an_object_without_a_kind_fails_and_does_not_block_others(world: World) -> None:
    nameless: JsonObject = {"metadata": {"name": "what", "namespace": world.namespace}}
    await world.create("demo", world.config_map("a"), nameless)
    await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    assert await world.exists(CONFIG_MAP, "a")


@pytest.mark.in_cluster
async def test_all_failures_are_reported_and_created_objects_are_recorded(world: World) -> None:
    bad = [config_map(f"bad-{n}", f"{world.namespace}-missing") for n in range(2)]
    await world.create("demo", world.config_map("good"), *bad)
    failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    text = message(failed, "ResourcesApplied")
    assert "bad-0" in text
    assert "bad-1" in text
    assert "2 errors occurred" in text
    assert "good" in [r["name"] for r in maps_at(failed, "status", "resources")]
    assert "observedGeneration" not in failed["status"]
    await world.delete("demo")
    await world.until_gone(CONFIG_MAP, world.key("good"))


def autoscaler(namespace: str) -> JsonObject:
    """Return an autoscaler of the Deployment."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 5,
        },
    }


async def test_replicas_belong_to_the_autoscaler(world: World) -> None:
    scaling = autoscaler(world.namespace)
    await world.start()
    await world.create("demo", deployment(world.namespace, replicas=1), scaling)
    await world.applied("demo")
    await world.settled()
    await world.client.patch(DEPLOYMENT, world.key("web"), {"spec": {"replicas": 3}})
    await world.put_secret(
        "demo", deployment(world.namespace, replicas=2, minReadySeconds=1), scaling
    )
    live = await world.until_object(
        DEPLOYMENT, world.key("web"), lambda o: o["spec"].get("minReadySeconds") == 1
    )
    assert live["spec"]["replicas"] == 3


async def test_replicas_follow_the_manifest_as_soon_as_the_autoscaler_is_gone(
    world: World,
) -> None:
    scaling = await world.client.create(autoscaler(world.namespace))
    await world.start(sync_period=3600.0)
    await world.create("demo", deployment(world.namespace, replicas=1))
    await world.applied("demo")
    await world.client.patch(DEPLOYMENT, world.key("web"), {"spec": {"replicas": 3}})
    await world.settled()
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    assert live["spec"]["replicas"] == 3
    await world.client.delete(GroupVersionKind.of(scaling), world.key("web"), uid=uid_of(scaling))
    await world.until_object(DEPLOYMENT, world.key("web"), lambda o: o["spec"]["replicas"] == 1)


async def test_only_always_update_sends_unchanged_objects(
    world: World,
) -> None:
    await world.start(always_update=True)
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    await world.settled()
    await world.stop()
    world.recorder.taken()
    await world.start(always_update=True)
    await world.settled()
    assert world.recorder.taken() == [f"update ConfigMap {world.key('a')}"]
    await world.stop()
    await world.start(always_update=False)
    await world.settled()
    assert world.recorder.taken() == []


# §4.9


async def test_a_successful_run_is_recorded_in_the_status(world: World) -> None:
    await world.start()
    await world.create(
        "demo", deployment(world.namespace, "nginx", replicas=0), world.config_map("foo")
    )
    done = await world.applied("demo")
    assert done["status"]["observedGeneration"] == generation_of(done)
    assert [(r["apiVersion"], r["kind"]) for r in done["status"]["resources"]] == [
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
    ]
    assert len(done["status"]["secretsDataChecksum"]) == 64


async def test_a_failing_run_keeps_the_checksum_and_the_observed_generation(
    world: World,
) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"))
    before = (await world.healthy("demo"))["status"]
    await world.put_secret("demo", world.config_map("a"), config_map("b", "nowhere-at-all"))
    failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    assert failed["status"]["secretsDataChecksum"] == before["secretsDataChecksum"]
    assert failed["status"]["observedGeneration"] == before["observedGeneration"]


# §5, as far as it needs a server


async def test_changed_replicas_are_reverted_unless_they_are_preserved_or_unset(
    world: World,
) -> None:
    kept = deployment(world.namespace, "kept", replicas=1)
    kept["metadata"]["annotations"] = {marks.PRESERVE_REPLICAS: "true"}
    await world.start()
    await world.create(
        "demo",
        deployment(world.namespace, "reverted", replicas=0),
        kept,
        deployment(world.namespace, "absent"),
    )
    await world.healthy("demo")
    for name in ("reverted", "kept", "absent"):
        await world.client.patch(DEPLOYMENT, world.key(name), {"spec": {"replicas": 2}})
    await world.until_object(
        DEPLOYMENT, world.key("reverted"), lambda o: o["spec"]["replicas"] == 0
    )
    await world.settled()
    for name in ("kept", "absent"):
        live = await world.client.get(DEPLOYMENT, world.key(name))
        assert live["spec"]["replicas"] == 2


@pytest.mark.in_cluster
async def test_injected_labels_are_on_the_pods(world: World) -> None:
    await world.create(
        "demo",
        deployment(world.namespace, replicas=1),
        injectLabels={"foo": "bar", marks.MANAGED_BY: "x"},
    )
    await world.healthy("demo")
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    desired = {"foo": "bar", marks.MANAGED_BY: "gardener"}
    assert labels_of(live) == desired
    assert labels_of(live["spec"]["template"]) == {"app": "web", **desired}
    pods = await world.client.list(POD, world.namespace)
    assert all(desired.items() <= labels_of(pod).items() for pod in pods)
    assert pods


@pytest.mark.in_cluster
async def test_a_service_keeps_its_node_port(world: World) -> None:
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {"type": "NodePort", "ports": [{"name": "http", "port": 80}]},
    }
    await world.create("demo", service)
    await world.healthy("demo")
    before = await world.client.get(SERVICE, world.key("web"))
    service["spec"]["ports"][0]["targetPort"] = 8080
    await world.put_secret("demo", service)
    after = await world.until_object(
        SERVICE, world.key("web"), lambda o: o["spec"]["ports"][0]["targetPort"] == 8080
    )
    assert after["spec"]["ports"][0]["nodePort"] == before["spec"]["ports"][0]["nodePort"]
    assert after["spec"]["clusterIP"] == before["spec"]["clusterIP"]


async def test_changed_volume_claim_templates_do_not_break_the_update(world: World) -> None:
    def stateful_set(size: str, paused: str) -> JsonObject:
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
            },
        }
        web = deployment(world.namespace, "db", replicas=0, serviceName="db")
        web["spec"]["volumeClaimTemplates"] = [claim]
        return {
            **web,
            "kind": "StatefulSet",
            "metadata": {**web["metadata"], "labels": {"a": paused}},
        }

    await world.start()
    await world.create("demo", stateful_set("1Gi", "1"))
    await world.applied("demo")
    await world.put_secret("demo", stateful_set("2Gi", "2"))
    live = await world.until_object(
        STATEFUL_SET, world.key("db"), lambda o: labels_of(o).get("a") == "2"
    )
    template = live["spec"]["volumeClaimTemplates"][0]
    assert template["spec"]["resources"]["requests"]["storage"] == "1Gi"
    await world.healthy("demo")


@pytest.mark.parametrize("force", [True, False])
async def test_foreign_annotations_are_only_removed_by_force(world: World, force: bool) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"), forceOverwriteAnnotations=force)
    await world.healthy("demo")
    await world.client.patch(
        CONFIG_MAP, world.key("a"), {"metadata": {"annotations": {"example.org/mine": "1"}}}
    )
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))
    await world.settled()
    annotations = annotations_of(await world.client.get(CONFIG_MAP, world.key("a")))
    assert ("example.org/mine" in annotations) is not force
    assert annotations[marks.DESCRIPTION] == marks.DESCRIPTION_TEXT
    assert annotations[marks.ORIGIN] == f"{world.namespace}/demo"


# §6


@pytest.mark.in_cluster
async def test_a_new_resource_gets_the_three_conditions_in_order(world: World) -> None:
    await world.create("demo", world.config_map("a"), deployment(world.namespace, replicas=1))
    done = await world.until("demo", is_ready)
    found = [
        (c["type"], c["status"], c["reason"], c["message"])
        for c in maps_at(done, "status", "conditions")
    ]
    assert found == [
        ("ResourcesHealthy", "True", "ResourcesHealthy", "All resources are healthy."),
        (
            "ResourcesProgressing",
            "False",
            "ResourcesRolledOut",
            "All resources have been fully rolled out.",
        ),
        ("ResourcesApplied", "True", "ApplySucceeded", "All resources are applied."),
    ]
    assert condition(done, "ResourcesApplied") == ("True", "ApplySucceeded")
