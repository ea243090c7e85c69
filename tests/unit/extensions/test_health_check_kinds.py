"""The included checks, each on objects as a cluster has them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import cast

import pytest

from pergola.api.kinds import POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import (
    CheckContext,
    HealthCheck,
    Verdict,
    daemon_set,
    deployment,
    managed_resource,
    stateful_set,
)
from pergola.kube.client import Client

READY = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}


class Pods:
    """The only list that checks request."""

    def __init__(self, pods: list[JsonObject]) -> None:
        self.pods = pods

    async def list(
        self, gvk: GroupVersionKind, namespace: str, *, labels: str
    ) -> "list[JsonObject]":
        assert (gvk, namespace, labels) == (POD, "shoot--a--b", "app=web")
        return self.pods


async def observe(check: HealthCheck, *objects: JsonObject) -> Verdict:
    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        found = [o for o in objects if (GroupVersionKind.of(o), Key.of(o)) == (gvk, key)]
        return found[0] if found else None

    async def cluster() -> None:
        return None

    now = datetime(2026, 5, 4, tzinfo=UTC)
    pods = [o for o in objects if o["kind"] == "Pod"]
    context = CheckContext(
        client=cast("Client", Pods(pods)),
        read=read,
        cluster=cluster,
        namespace="shoot--a--b",
        now=now,
    )
    return await check.run(context, {})


def resource(**conditions: str) -> JsonObject:
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": "agents", "namespace": "shoot--a--b", "generation": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": k, "status": v} for k, v in (READY | conditions).items()],
        },
    }


def workload(kind: str, ready: int) -> JsonObject:
    conditions = [
        {"type": "Available", "status": "True" if ready else "False"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "agents", "namespace": "shoot--a--b", "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {
            "observedGeneration": 1,
            "replicas": 1,
            "readyReplicas": ready,
            "updatedReplicas": 1,
            "availableReplicas": ready,
            "currentReplicas": 1,
            "desiredNumberScheduled": 1,
            "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1,
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": 1 - ready,
            "conditions": conditions,
        },
    }


async def test_a_managed_resource_that_is_applied_healthy_and_rolled_out_is_healthy() -> None:
    assert (await observe(managed_resource("agents"), resource())).status == "True"


async def test_a_missing_managed_resource_is_reported_as_unhealthy() -> None:
    found = await observe(managed_resource("agents"))
    assert found == Verdict("False", "ManagedResource shoot--a--b/agents does not exist")


@pytest.mark.parametrize("condition", ["ResourcesApplied", "ResourcesHealthy"])
async def test_an_unhealthy_managed_resource_is_explained(
    condition: str,
) -> None:
    found = await observe(managed_resource("agents"), resource(**{condition: "False"}))
    assert found.status == "False"
    assert condition in found.detail


async def test_a_rollout_of_a_managed_resource_progresses_with_the_threshold() -> None:
    check = managed_resource("agents", threshold=60.0)
    found = await observe(check, resource(ResourcesProgressing="True"))
    assert (found.status, found.threshold) == ("Progressing", 60.0)
    unlimited = await observe(managed_resource("agents"), resource(ResourcesProgressing="True"))
    assert unlimited.status == "True"


async def test_an_object_that_a_user_configured_wrongly_has_a_code() -> None:
    live = resource(ResourcesApplied="False")
    [condition] = [it for it in live["status"]["conditions"] if it["type"] == "ResourcesApplied"]
    condition["message"] = (
        'error during apply of object "apps/v1/Deployment/kube-system/a": Deployment.apps "a" is '
        "invalid: spec.replicas: Invalid value: -1"
    )
    assert (await observe(managed_resource("agents"), live)).codes == (Code.CONFIGURATION_PROBLEM,)


Maker = Callable[[str], HealthCheck]


@pytest.mark.parametrize(
    ("make", "kind"),
    [(deployment, "Deployment"), (stateful_set, "StatefulSet"), (daemon_set, "DaemonSet")],
)
async def test_a_workload_is_judged_by_the_rules_of_its_kind(make: Maker, kind: str) -> None:
    assert (await observe(make("agents"), workload(kind, 1))).status == "True"
    unhealthy = await observe(make("agents"), workload(kind, 0))
    assert unhealthy.status == "False"
    assert unhealthy.detail.startswith(f"{kind} shoot--a--b/agents is unhealthy: ")
    missing = await observe(make("agents"))
    assert missing == Verdict("False", f"{kind} shoot--a--b/agents does not exist")


async def test_a_workload_during_a_rollout_progresses() -> None:
    live = workload("StatefulSet", 1)
    live["status"]["updatedReplicas"] = 0
    check = stateful_set("agents", threshold=60.0)
    assert (await observe(check, live)).status == "Progressing"
    assert (await observe(stateful_set("agents"), live)).status == "True"


async def test_an_unhealthy_workload_names_the_trouble_of_its_pod() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "agents-1", "namespace": "shoot--a--b"},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "agent", "state": {"waiting": waiting}}],
        },
    }

    found = await observe(deployment("agents"), workload("Deployment", 0), pod)

    assert "; pod agents-1: " in found.detail
    assert "ImagePullBackOff" in found.detail
