"""The merge rules of spec 10 §5 on a real API server; unit tests cover the details."""

import secrets
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SERVICE
from pergola.api.objects import JsonObject, annotations_of, labels_of
from pergola.testing.world import World, is_applied, message


async def reconcile(world: World) -> None:
    """Request a run, and wait until it has ended."""
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))
    await world.settled()


def deployment(world: World, **annotations: str) -> JsonObject:
    """Return a Deployment without replicas, whose container has requests."""
    labels = {"app": "web"}
    container = {
        "name": "c",
        "image": "registry.example/c:1",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": world.namespace,
            "annotations": annotations,
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def test_foreign_labels_are_kept_and_labels_removed_from_the_manifest_are_removed(
    world: World,
) -> None:
    await world.start()
    first = world.config_map("a", labels={"ours": "1", "changed": "1"})
    await world.create("demo", first)
    await world.healthy("demo")
    theirs = {"metadata": {"labels": {"foo": "bar", "changed": "by-hand"}}}
    await world.stop()
    await world.client.patch(CONFIG_MAP, world.key("a"), theirs)
    await world.put_secret("demo", world.config_map("a"))
    await world.start()
    await world.until_object(CONFIG_MAP, world.key("a"), lambda o: "ours" not in labels_of(o))
    live = await world.client.get(CONFIG_MAP, world.key("a"))
    assert labels_of(live) == {
        "foo": "bar",
        "changed": "by-hand",
        marks.MANAGED_BY: "gardener",
    }


@pytest.mark.in_cluster
async def test_references_that_are_not_in_the_manifest_are_removed(world: World) -> None:
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    key = f"{marks.REFERENCE_PREFIX}secret-12345678"
    patch = {"metadata": {"annotations": {key: "gone", "example.org/kept": "1"}}}
    await world.client.patch(CONFIG_MAP, world.key("a"), patch)
    live = await world.until_object(
        CONFIG_MAP,
        world.key("a"),
        lambda o: key not in annotations_of(o) and "example.org/kept" in annotations_of(o),
    )
    assert annotations_of(live)[marks.DESCRIPTION] == marks.DESCRIPTION_TEXT


@pytest.mark.parametrize(("value", "kept"), [("true", True), ("True", False)])
async def test_changed_resources_are_kept_only_if_they_are_preserved(
    world: World, value: str, kept: bool
) -> None:
    await world.start()
    await world.create("demo", deployment(world, **{marks.PRESERVE_RESOURCES: value}))
    await world.healthy("demo")
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    containers: list[Any] = live["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"]["requests"]["cpu"] = "50m"
    template = {"template": {"spec": {"containers": containers}}}
    await world.client.patch(DEPLOYMENT, world.key("web"), {"spec": template})
    await reconcile(world)
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    requests = live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "50m" if kept else "10m", "memory": "16Mi"}


async def test_a_requested_restart_is_not_reverted(world: World) -> None:
    await world.start()
    await world.create("demo", deployment(world))
    await world.healthy("demo")
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    template = {"template": {"metadata": {"annotations": restarted}}}
    await world.client.patch(DEPLOYMENT, world.key("web"), {"spec": template})
    await reconcile(world)
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    assert annotations_of(live["spec"]["template"]) == restarted


@pytest.mark.in_cluster
async def test_an_explicit_node_port_is_used(world: World) -> None:
    def service(**spec: Any) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": world.namespace},
            "spec": spec,
        }

    await world.create("demo", service(ports=[{"port": 80}]))
    await world.healthy("demo")
    await world.put_secret("demo", service(type="NodePort", ports=[{"port": 80}]))
    live = await world.until_object(
        SERVICE, world.key("web"), lambda o: o["spec"]["type"] == "NodePort"
    )
    assigned = live["spec"]["ports"][0]["nodePort"]
    desired = 30_000 + secrets.randbelow(80)  # the API server never assigns one of these itself
    ports = [{"port": 80, "nodePort": desired}]
    await world.put_secret("demo", service(type="NodePort", ports=ports))
    live = await world.until_object(
        SERVICE, world.key("web"), lambda o: o["spec"]["ports"][0]["nodePort"] != assigned
    )
    assert live["spec"]["ports"][0]["nodePort"] == desired
    await world.until("demo", is_applied)


async def test_an_address_that_a_service_keeps_against_its_manifest_is_named(
    world: World,
) -> None:
    def service(**spec: Any) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": world.namespace},
            "spec": {"ports": [{"port": 80}], **spec},
        }

    await world.start()
    await world.create("demo", service(clusterIP="None"))
    done = await world.healthy("demo")
    assert message(done, "ResourcesApplied") == "All resources are applied."

    await world.put_secret("demo", service())
    remark = f'"v1/Service/{world.namespace}/web" keeps its clusterIP None'
    await world.until("demo", lambda r: remark in message(r, "ResourcesApplied"))

    await world.client.delete(SERVICE, world.key("web"))
    done = await world.until("demo", lambda r: "\n" not in message(r, "ResourcesApplied"))
    live = await world.client.get(SERVICE, world.key("web"))
    assert live["spec"]["clusterIP"] != "None"
