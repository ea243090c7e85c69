"""The reason why a pod on a real node crashes, down to the last line of its log."""

import asyncio

import pytest

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.garden.components.component import Identity
from pergola.kube.client import Client
from pergola.operator.reconcile.explain import explain
from pergola.testing.waiting import PATIENCE, until
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
        # Each time that it is restarted, the container runs for a moment.
        while (found := await explain(node_client, Identity(POD, key))) is None or not found.log:
            pass
    assert 'container "etcd" crashes (exit code 1' in found.problem
    assert "read-only file system" in found.log
    assert found.event
    assert found.next_step.endswith(f"kubectl -n {node_namespace} logs etcd -c etcd --previous")
