"""ManagedResources and their objects, and clients that write them, in a sandbox each."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

import orjson

from pergola import sandbox
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.testing.crds import install_crds

NAMESPACE = "bench"
_NAMESPACE_OBJECT: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE},
}
_IN_FLIGHT = 16


class Effort(NamedTuple):
    """The cost of sending the writes of a run: seconds, and CPU seconds of the client."""

    seconds: float = 0.0
    cpu: float = 0.0


NO_EFFORT = Effort()


def objects(number: int) -> list[JsonObject]:
    """Return the ten objects of one ManagedResource."""
    name = f"app-{number:04}"

    def named(api: str, kind: str, suffix: str = "", **content: object) -> JsonObject:
        metadata = {"name": f"{name}{suffix}", "namespace": NAMESPACE}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}

    def deployment(suffix: str) -> JsonObject:
        labels = {"app": f"{name}{suffix}"}
        container = {
            "name": "app",
            "image": "registry.example/app:1.0.0",
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        }
        return named(
            "apps/v1",
            "Deployment",
            suffix,
            spec={
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        )

    rbac = "rbac.authorization.k8s.io"
    return [
        *(named("v1", "ConfigMap", f"-{n}", data={"key": f"value-{number}-{n}"}) for n in range(3)),
        named("v1", "ServiceAccount", automountServiceAccountToken=False),
        named(
            f"{rbac}/v1",
            "Role",
            rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        ),
        named(
            f"{rbac}/v1",
            "RoleBinding",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        ),
        named("v1", "Service", spec={"selector": {"app": name}, "ports": [{"port": 80}]}),
        deployment("-a"),
        deployment("-b"),
        named(
            "policy/v1",
            "PodDisruptionBudget",
            spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        ),
    ]


async def fill(client: Client, count: int, size: int = 10) -> None:
    """Create the namespace, the Secrets and the ManagedResources with `size` objects each."""
    await client.create(_NAMESPACE_OBJECT)
    limit = asyncio.Semaphore(_IN_FLIGHT)

    async def one(number: int) -> None:
        metadata = {"name": f"mr-{number:04}", "namespace": NAMESPACE}
        text = "\n".join(orjson.dumps(obj).decode() for obj in objects(number)[:size])
        async with limit:
            await client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": metadata,
                    "stringData": {"objects.json": text},
                }
            )
            await client.create(
                {
                    "apiVersion": MANAGED_RESOURCE.api_version,
                    "kind": MANAGED_RESOURCE.kind,
                    "metadata": metadata,
                    "spec": {"secretRefs": [{"name": metadata["name"]}]},
                }
            )

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def bare(count: int) -> Effort:
    """Return the cost for a client that creates the objects, and nothing else."""
    async with opened("bare") as (_, client):
        await client.create(_NAMESPACE_OBJECT)
        found = [obj for number in range(count) for obj in objects(number)]
        return await _effort(map(client.create, found))


async def same_writes(count: int) -> Effort:
    """Return the cost for a client that sends the writes of a resource manager, in their order.

    They are 14 for each ManagedResource of ten objects: its finalizer and that of its Secret, the
    objects, and its status, twice. They do not depend on each other, except for this order.
    """
    async with opened("same") as (_, client):
        await install_crds(client)
        await fill(client, count)
        limit = asyncio.Semaphore(_IN_FLIGHT)

        async def send(write: Awaitable[object]) -> None:
            async with limit:
                await write

        async def one(number: int) -> None:
            key, found = Key(NAMESPACE, f"mr-{number:04}"), objects(number)
            finalizer: JsonObject = {"metadata": {"finalizers": ["bench.example/resource"]}}
            await send(client.patch(MANAGED_RESOURCE, key, finalizer))
            await send(client.patch(SECRET, key, finalizer))
            async with asyncio.TaskGroup() as group:
                for obj in found:
                    group.create_task(send(client.create(obj)))
            for status in ("Unknown", "True"):
                patch: JsonObject = {"status": _status(found, status)}
                await send(client.patch(MANAGED_RESOURCE, key, patch, subresource="status"))

        return await _effort(map(one, range(count)), limit=count)


def _status(applied: list[JsonObject], healthy: str) -> JsonObject:
    """Return a status of the size that a resource manager writes."""
    at = "2026-01-01T00:00:00Z"
    conditions = [
        {
            "type": name,
            "status": status,
            "reason": name,
            "message": "All resources are in this state.",
            "lastTransitionTime": at,
            "lastUpdateTime": at,
        }
        for name, status in (
            *(("ResourcesApplied", "True"), ("ResourcesHealthy", healthy)),
            ("ResourcesProgressing", "False"),
        )
    ]
    resources = [
        {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj["metadata"]} for obj in applied
    ]
    return {"observedGeneration": 1, "conditions": conditions, "resources": resources}


async def _effort(tasks: Iterable[Coroutine[object, object, object]], limit: int = 0) -> Effort:
    """Run tasks, so many of them at the same time, and measure them."""
    turns = asyncio.Semaphore(limit or _IN_FLIGHT)

    async def one(task: Coroutine[object, object, object]) -> None:
        async with turns:
            await task

    began, cpu = time.monotonic(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(one(task))
    return Effort(time.monotonic() - began, time.process_time() - cpu)


@asynccontextmanager
async def opened(name: str) -> AsyncIterator[tuple[sandbox.Sandbox, Client]]:
    """Run a sandbox while the block runs; yield it, and a client."""
    started = await sandbox.start(f"{name}-{os.getpid()}", progress=lambda _: None)
    try:
        async with Client.connect(load(started.kubeconfig)) as client:
            yield started, client
    finally:
        await started.stop()
