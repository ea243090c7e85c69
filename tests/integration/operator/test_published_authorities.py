"""Waiting until the namespaces of a cluster publish a certificate authority.

The cluster has no kube-controller-manager, so the tests write its ConfigMaps.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.operator.rotation.root_authorities import NAME, published
from pergola.runtime.retrying import collect_failures

OLD, NEW = "-----OLD-----\n", "-----NEW-----\n"
FIRST, SECOND = Key("default", NAME), Key("kube-public", NAME)


async def write(client: Client, key: Key, *authorities: str) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": key.namespace, "name": key.name},
        "data": {"ca.crt": "".join(authorities)},
    }
    await client.apply(config_map, manager="test", force=True)


@pytest.fixture
async def cluster(runtime: Client) -> AsyncIterator[Client]:
    for key in (FIRST, SECOND):
        await write(runtime, key, OLD)
    yield runtime
    for key in (FIRST, SECOND):
        if await runtime.find(CONFIG_MAP, key):
            await runtime.delete(CONFIG_MAP, key)


async def test_the_wait_ends_when_the_last_namespace_has_the_authority(cluster: Client) -> None:
    notes: asyncio.Queue[str] = asyncio.Queue()

    def note(subject: str, problem: str) -> None:
        assert subject == f"ConfigMap {NAME}"
        notes.put_nowait(problem)

    async with asyncio.TaskGroup() as group:
        group.create_task(published(cluster, NEW, note))
        lacks = "lacks the new certificate authority in namespace"
        assert await notes.get() == f"{lacks} default, kube-public"
        await write(cluster, FIRST, OLD, NEW)
        assert await notes.get() == f"{lacks} kube-public"
        await write(cluster, SECOND, OLD, NEW)
        assert await notes.get() == ""


async def test_the_wait_ignores_a_deleted_namespace(cluster: Client) -> None:
    await write(cluster, FIRST, NEW)
    async with asyncio.TaskGroup() as group:
        group.create_task(published(cluster, NEW))
        await cluster.delete(CONFIG_MAP, SECOND)


async def test_the_error_after_the_deadline_names_the_missing_namespaces(cluster: Client) -> None:
    await write(cluster, FIRST, NEW)
    noted = asyncio.Event()
    with collect_failures() as failures:
        waiting = asyncio.create_task(published(cluster, NEW, lambda *_: noted.set()))
        await noted.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    lacks = "lacks the new certificate authority in namespace kube-public"
    assert str(failures.last) == f"ConfigMap {NAME} {lacks}"
