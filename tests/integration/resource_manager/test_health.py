"""ResourcesHealthy and ResourcesProgressing on a real API server: spec 10 §8 and §9."""

from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DAEMON_SET, DEPLOYMENT, POD, SERVICE, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, JsonObject, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.controllers import health
from pergola.testing.crds import definition
from pergola.testing.world import World, condition, has, is_ready, message
from tests.support.objects import warning


def pod(world: World, name: str, **annotations: str) -> JsonObject:
    """Return a Pod that no scheduler assigns, so that it stays pending."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": world.namespace, "annotations": annotations},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "c", "image": "registry.example/c:1"}],
        },
    }


def workload(world: World, kind: str, **spec: Any) -> JsonObject:
    """Return a Deployment or StatefulSet named web."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
            },
            **spec,
        },
    }


# §8


@pytest.mark.in_cluster
async def test_a_resource_without_objects_is_healthy(world: World) -> None:
    await world.create_resource("demo", [])
    done = await world.until("demo", is_ready)
    assert condition(done, "ResourcesHealthy") == ("True", "ResourcesHealthy")


async def test_a_run_records_its_objects_first_and_its_verdict_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "SETTLE_SECONDS", 60.0)  # longer than any delay of the API server
    await world.start()
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    writes = [w for w in world.recorder.taken() if w.startswith(("create ConfigMap", "update/"))]
    status = f"update/status ManagedResource {world.key('demo')}"
    assert writes == [status, f"create ConfigMap {world.key('a')}", status]


async def test_a_pending_pod_is_unhealthy_until_it_runs(world: World) -> None:
    await world.start()
    await world.create("demo", pod(world, "p"))
    sick = await world.until("demo", has("ResourcesHealthy", "False", "PodUnhealthy"))
    assert "Pending" in message(sick, "ResourcesHealthy")
    await world.client.patch(
        POD, world.key("p"), {"status": {"phase": "Running"}}, subresource="status"
    )
    await world.until("demo", has("ResourcesHealthy", "True", "ResourcesHealthy"))


@pytest.mark.in_cluster
async def test_a_pod_with_a_skipped_check_only_has_to_exist(world: World) -> None:
    await world.create("demo", pod(world, "p", **{marks.SKIP_HEALTH_CHECK: "true"}))
    await world.healthy("demo")


async def test_a_load_balancer_without_an_address_shows_its_warnings(world: World) -> None:
    await world.start()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    created = await world.client.create(service)
    await world.client.create(warning(created, "no address left"))
    await world.create("demo", service)
    sick = await world.until("demo", has("ResourcesHealthy", "False", "ServiceUnhealthy"))
    assert "no address left" in message(sick, "ResourcesHealthy")
    ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    await world.client.patch(SERVICE, world.key("web"), ingress, subresource="status")
    await world.healthy("demo")


async def test_nothing_is_checked_while_applying_fails(world: World) -> None:
    await world.start()
    await world.create_resource("demo", ["nowhere"])
    await world.until("demo", has("ResourcesApplied", "False", "CannotReadSecret"))
    await world.settled()
    resource = await world.resource("demo")
    assert condition(resource, "ResourcesHealthy") == ("", "")
    assert condition(resource, "ResourcesProgressing") == ("", "")


async def test_a_manually_deleted_deployment_is_reported_and_recreated_at_once(
    world: World,
) -> None:
    await world.start(sync_period=3600.0, health_sync_period=3600.0)
    await world.create("demo", workload(world, "Deployment", replicas=0))
    before = await world.healthy("demo")
    moved = [c["lastTransitionTime"] for c in maps_at(before, "status", "conditions")]
    # The instance only observes: a real one may be too quick for the Deployment to be missed.
    await world.stop()
    await world.start(resource_class="*", workers=0)
    await world.client.delete(DEPLOYMENT, world.key("web"))
    await world.until("demo", has("ResourcesHealthy", "False", "DeploymentMissing"))
    await world.stop()
    await world.start(sync_period=3600.0, health_sync_period=3600.0)
    await world.healthy("demo")
    uid = (await world.client.get(DEPLOYMENT, world.key("web")))["metadata"]["uid"]
    await world.client.delete(DEPLOYMENT, world.key("web"))
    again = await world.until_object(
        DEPLOYMENT, world.key("web"), lambda o: o["metadata"]["uid"] != uid
    )
    assert again["metadata"]["uid"] != uid
    after = await world.healthy("demo")
    assert [c["lastTransitionTime"] for c in maps_at(after, "status", "conditions")] >= moved


async def test_a_resource_of_another_class_or_an_ignored_one_gets_no_verdict(
    world: World,
) -> None:
    await world.put_secret("demo", world.config_map("a"))
    await world.create_resource("other", ["demo"], None, **{"class": "seed"})
    await world.create_resource("ignored", ["demo"], {"annotations": {marks.IGNORE: "true"}})
    await world.start()
    ignored = await world.until(
        "ignored", has("ResourcesHealthy", "True", "ManagedResourceIgnored")
    )
    assert condition(ignored, "ResourcesProgressing") == ("False", "ManagedResourceIgnored")
    await world.settled()
    assert "status" not in await world.resource("other")
    await world.edit("other", {"spec": {"class": None}})
    await world.healthy("other")
    await world.edit("ignored", {"metadata": {"annotations": {marks.IGNORE: None}}})
    await world.until("ignored", has("ResourcesHealthy", "True", "ResourcesHealthy"))


async def test_an_object_of_a_missing_kind_is_missing(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"))
    done = await world.healthy("demo")
    await world.stop()
    listed = [
        *done["status"]["resources"],
        {"apiVersion": "nowhere.example.org/v1", "kind": "Gadget", "name": "g"},
    ]
    await world.client.patch(
        MANAGED_RESOURCE,
        world.key("demo"),
        {"status": {"resources": listed}},
        subresource="status",
    )
    # The instance only observes: a real one would correct the list first.
    await world.start(resource_class="*", workers=0)
    await world.until("demo", has("ResourcesHealthy", "False", "GadgetMissing"))


# §9


async def test_a_deployment_is_progressing_until_its_old_pods_are_gone(world: World) -> None:
    await world.start()
    await world.create("demo", workload(world, "Deployment", replicas=1))
    await world.healthy("demo")
    extra = pod(world, "extra")
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    extra["metadata"]["labels"] = live["spec"]["template"]["metadata"]["labels"]
    await world.client.create(extra)
    progressing = await world.until(
        "demo", has("ResourcesProgressing", "True", "DeploymentProgressing")
    )
    assert "2 pods" in message(progressing, "ResourcesProgressing")
    failed = {"status": {"phase": "Failed"}}
    await world.client.patch(POD, world.key("extra"), failed, subresource="status")
    await world.until("demo", has("ResourcesProgressing", "False", "ResourcesRolledOut"))


async def test_all_pods_of_a_large_deployment_are_counted(world: World) -> None:
    await world.start()
    large = workload(world, "Deployment", replicas=1)
    large["metadata"]["annotations"] = {"example.org/large": "x" * 20_000}
    await world.create("demo", large)
    await world.healthy("demo")
    extra = pod(world, "extra")
    live = await world.client.get(DEPLOYMENT, world.key("web"))
    extra["metadata"]["labels"] = live["spec"]["template"]["metadata"]["labels"]
    await world.client.create(extra)
    await world.until("demo", has("ResourcesProgressing", "True", "DeploymentProgressing"))


async def test_a_rollout_is_progressing_until_it_is_complete(world: World) -> None:
    await world.start()
    await world.create("demo", workload(world, "StatefulSet", replicas=1, serviceName="web"))
    await world.healthy("demo")
    # As if its controller had not updated the pod yet
    await world.client.patch(
        STATEFUL_SET, world.key("web"), {"status": {"updatedReplicas": 0}}, subresource="status"
    )
    await world.until("demo", has("ResourcesProgressing", "False", "ResourcesRolledOut"))


@pytest.mark.in_cluster
async def test_config_maps_and_missing_deployments_count_as_rolled_out(world: World) -> None:
    await world.create("demo", world.config_map("a"))
    done = await world.healthy("demo")
    assert condition(done, "ResourcesProgressing") == ("False", "ResourcesRolledOut")
    assert await world.exists(CONFIG_MAP, "a")


async def test_a_quick_rollout_shows_no_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, "at once" takes a while.
    monkeypatch.setattr("pergola.resource_manager.controllers.health.SETTLE_SECONDS", 3600.0)
    seen: list[tuple[str, str]] = []
    await world.start()
    await world.create("demo", workload(world, "Deployment", replicas=1))

    def observe(resource: JsonObject) -> bool:
        seen.append(condition(resource, "ResourcesHealthy"))
        return is_ready(resource)

    await world.until("demo", observe)
    assert {status for status, _ in seen} <= {"", "Unknown", "True"}


async def test_a_daemon_set_is_judged_by_its_nodes(world: World) -> None:
    daemon_set = workload(world, "DaemonSet")
    await world.start()
    await world.create("demo", daemon_set)
    done = await world.healthy("demo")
    assert condition(done, "ResourcesProgressing") == ("False", "ResourcesRolledOut")
    kind = DAEMON_SET
    # No node matches any more, so pods become unwanted where they run, and are then deleted.
    selector = {"template": {"spec": {"nodeSelector": {"nowhere": "true"}}}}
    daemon_set["spec"]["template"]["spec"] |= selector["template"]["spec"]
    await world.put_secret("demo", daemon_set)
    await world.until_object(
        kind, world.key("web"), lambda o: o["status"]["desiredNumberScheduled"] == 0
    )
    await world.healthy("demo")


async def test_objects_of_other_projects_are_judged_by_their_own_rules(world: World) -> None:
    prometheus = GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus")
    certificate = GroupVersionKind("cert.gardener.cloud", "v1alpha1", "Certificate")
    for gvk, plural in ((prometheus, "prometheuses"), (certificate, "certificates")):
        crd = definition(gvk)
        crd["metadata"]["name"] = f"{plural}.{gvk.group}"
        crd["spec"]["names"]["plural"] = plural
        await world.client.create(crd)
    metadata = {"name": "one", "namespace": world.namespace}
    await world.start()
    await world.create(
        "demo",
        {"apiVersion": prometheus.api_version, "kind": "Prometheus", "metadata": metadata},
        {"apiVersion": certificate.api_version, "kind": "Certificate", "metadata": metadata},
    )
    sick = await world.until("demo", has("ResourcesHealthy", "False", "CertificateUnhealthy"))
    assert "Prometheus" in message(sick, "ResourcesHealthy")

    # Without a status subresource, each of these writes increments the generation.
    ready = {"status": {"state": "Ready", "observedGeneration": 9}}
    await world.client.patch(certificate, world.key("one"), ready)
    await world.until("demo", has("ResourcesHealthy", "False", "PrometheusUnhealthy"))
    conditions = [
        {"type": "Available", "status": "True", "observedGeneration": 9},
        {"type": "Reconciled", "status": "False", "observedGeneration": 9},
    ]
    available = {"status": {"availableReplicas": 1, "conditions": conditions}}
    await world.client.patch(prometheus, world.key("one"), available)
    await world.until("demo", has("ResourcesHealthy", "True", "ResourcesHealthy"))
    await world.until("demo", has("ResourcesProgressing", "True", "PrometheusProgressing"))
    conditions[1]["status"] = "True"
    updated = {"status": {"updatedReplicas": 1, "conditions": conditions}}
    await world.client.patch(prometheus, world.key("one"), updated)
    await world.until("demo", has("ResourcesProgressing", "False", "ResourcesRolledOut"))
