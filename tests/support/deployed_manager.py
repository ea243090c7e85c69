"""The resource manager as a Deployment from its chart, and outages of it."""

import asyncio
import fcntl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from pergola.api import marks
from pergola.api.kinds import DEPLOYMENT, NETWORK_POLICY, POD
from pergola.api.objects import JsonObject, Key, generation_of, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.resource_manager.webhooks.projected_token_mount import MOUNT_PATH
from pergola.sandbox import Sandbox
from pergola.sandbox.node.configuration import PAUSE_IMAGE
from pergola.testing.crds import install_crds
from pergola.testing.waiting import until, until_gone
from tests.support.charts import RESOURCE_MANAGER

MANAGER: Final = Key("garden", "gardener-resource-manager")
READS_METRICS: Final = {
    f"networking.resources.gardener.cloud/to-{MANAGER.name}-tcp-8080": "allowed"
}
"""Labels of pods that may read the metrics of the installation."""
_PODS: Final = f"app={MANAGER.name}"
_FIELD_MANAGER: Final = "pergola-testing"
_PATIENCE: Final = 200.0  # seconds; the image may have to be built


async def install(client: Client) -> None:
    """Apply the chart, and return when the API server reaches the webhooks.

    Its namespace has a role, as in a Garden, so that webhooks could block its own pods. It admits
    only pods without privileges, and denies all traffic that the chart does not allow.
    """
    await install_crds(client)
    labels = {marks.ROLE: "garden", "pod-security.kubernetes.io/enforce": "restricted"}
    metadata: JsonObject = {"name": MANAGER.namespace, "labels": labels}
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    for obj in (namespace, _deny_all(), *await asyncio.to_thread(_chart)):
        # Workers of one test run may install at the same time.
        await client.apply(obj, manager=_FIELD_MANAGER, force=True)
    await recovered(client)


def _chart() -> list[JsonObject]:
    reader = {"namespaceSelector": {}, "podSelector": {"matchLabels": READS_METRICS}}
    values = {"networkPolicy": {"enabled": True, "metricsFrom": [reader]}}
    return RESOURCE_MANAGER.rendered(values)


@contextmanager
def turn(sandbox: Sandbox, *, exclusive: bool) -> Iterator[None]:
    """Use the installation: with all workers of the test run, or exclusively to break it."""
    with (sandbox.directory / "manager.turn").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def _deny_all() -> JsonObject:
    return {
        "apiVersion": NETWORK_POLICY.api_version,
        "kind": NETWORK_POLICY.kind,
        "metadata": {"name": "deny-all", "namespace": MANAGER.namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


async def recovered(client: Client) -> None:
    """Return when all replicas are ready and the API server reaches the webhooks."""
    await until(client, DEPLOYMENT, MANAGER, _has_all_replicas, patience=_PATIENCE)
    async with asyncio.timeout(_PATIENCE):
        while not await _mutates(client):
            await client.get_raw("/version")


async def kill_pods(client: Client) -> None:
    """Delete all pods at once, and return when they are gone."""
    pods = [Key.of(pod) for pod in await client.list(POD, MANAGER.namespace, labels=_PODS)]
    for key in pods:
        await client.delete(POD, key)
    for key in pods:
        await until_gone(client, POD, key)


@asynccontextmanager
async def outage(client: Client) -> AsyncGenerator[None]:
    """Run the block without any replica, and return when all are ready again."""
    replicas = map_at(await client.get(DEPLOYMENT, MANAGER), "spec")["replicas"]
    await _scale(client, 0)
    try:
        await kill_pods(client)
        await until(client, DEPLOYMENT, MANAGER, _has_no_replicas)
        yield
    finally:
        await _scale(client, replicas)
        await recovered(client)


async def _scale(client: Client, replicas: int) -> None:
    await client.patch(DEPLOYMENT, MANAGER, {"spec": {"replicas": replicas}})


def _has_no_replicas(deployment: JsonObject) -> bool:
    return not map_at(deployment, "status").get("replicas")


def _has_all_replicas(deployment: JsonObject) -> bool:
    status = map_at(deployment, "status")
    observed = status.get("observedGeneration") == generation_of(deployment)
    ready = {status.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas")}
    return observed and ready == {map_at(deployment, "spec")["replicas"]}


async def _mutates(client: Client) -> bool:
    try:
        pod = await client.create(pod_with_account(*MANAGER), dry_run=True)
    except ApiError:
        return False
    return mounts_token(pod)


def pod_with_account(namespace: str, account: str) -> JsonObject:
    """Return a pod whose token `projected-token-mount` mounts, if its ServiceAccount does not."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "reviewed", "namespace": namespace},
        "spec": {
            "serviceAccountName": account,
            "containers": [{"name": "main", "image": PAUSE_IMAGE, "securityContext": own}],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def mounts_token(pod: JsonObject) -> bool:
    """Return whether a pod's containers have a token."""
    containers = maps_at(pod, "spec", "containers")
    return all(
        MOUNT_PATH in [mount["mountPath"] for mount in maps_at(container, "volumeMounts")]
        for container in containers
    )
