"""The reason why a pod on a real node crashes, down to the last line of its log."""

import asyncio

import pytest

from pergola.api.kinds import POD
from pergola.api.objects import Identity, JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.testing.waiting import PATIENCE, until
from pergola.why import Kind, Reader
from pergola.why.health import unhealthy
from tests.support.node_workloads import etcd_pod

pytestmark = pytest.mark.node


def has_crashed(pod: JsonObject) -> bool:
    statuses = maps_at(pod, "status", "containerStatuses")
    reasons = [map_at(each, "state", "waiting").get("reason") for each in statuses]
    return "CrashLoopBackOff" in reasons


async def test_a_pod_that_crashes_is_explained_by_its_last_log_line(
    node_client: Client, node_namespace: str
) -> None:
    pod = etcd_pod(node_namespace)
    pod["spec"]["containers"][0]["args"] = ["--data-dir=/unwritable"]
    await node_client.create(pod)
    key = Key(node_namespace, "etcd")
    await until(node_client, POD, key, has_crashed)
    async with asyncio.timeout(PATIENCE):
        evidence: dict[Kind, str] = {}
        # Each time that it is restarted, the container runs for a moment.
        while Kind.LOG not in evidence:
            found = await unhealthy(Identity(POD, key), Reader(node_client))
            evidence = dict(found.evidence) if found else {}
    assert found is not None
    assert 'container "etcd" crashes (exit code 1' in found.text
    assert "read-only file system" in evidence[Kind.LOG]
    assert evidence[Kind.EVENT]
    assert found.next_step.endswith(f"kubectl -n {node_namespace} logs etcd -c etcd --previous")
