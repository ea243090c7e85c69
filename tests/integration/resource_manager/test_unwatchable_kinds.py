"""A kind that cannot be watched concerns only the ManagedResources that mention it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP, LEASE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.resource_manager.target import Target, watches
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import PATIENCE, running
from tests.support.service_accounts import service_account_config, until_granted

RULES: list[JsonObject] = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "update", "delete"],
    },
]


@pytest.fixture
async def target(
    kubeconfig: Path, cluster_client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Target]:
    """Yield a target whose identity may do everything with Leases but list and watch them."""
    monkeypatch.setattr(watches, "_FIRST_LIST_SECONDS", 0.0)
    rbac = "rbac.authorization.k8s.io"
    metadata = {"name": "limited", "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    await cluster_client.create(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": RULES}
    )
    await cluster_client.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "limited"},
            "subjects": [subject],
        }
    )
    await until_granted(cluster_client, Key(namespace, "default"))
    identity = await service_account_config(load(kubeconfig), namespace)
    async with Client.connect(identity) as client:
        target = Target(
            client, managed_by="gardener", namespaces=[namespace], is_here=lambda _: True
        )
        async with running(Unit("target", tasks=[target.run])):
            yield target


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if holds():
                return
            await asyncio.sleep(0.02)


def kinds(target: Target) -> set[GroupVersionKind]:
    return {cache.gvk for cache in target.caches()}


async def test_a_watch_that_does_not_work_ends_with_the_last_object_of_its_kind(
    target: Target, namespace: str
) -> None:
    one, other = Key(namespace, "one"), Key(namespace, "other")
    for resource in (one, other):
        target.need(resource, [LEASE, CONFIG_MAP])
    for gvk in (LEASE, CONFIG_MAP):
        await target.watch(gvk)
    await eventually(lambda: list(target.unwatched_kinds()) == [LEASE])
    assert "cannot watch resource" in (target.unwatched(LEASE) or "")
    await eventually(lambda: any(cache.is_synced for cache in target.caches()))

    target.need(one, [])
    assert kinds(target) == {LEASE, CONFIG_MAP}
    target.need(other, [CONFIG_MAP])
    assert kinds(target) == {CONFIG_MAP}
    name = f"watch {LEASE}"
    await eventually(lambda: name not in {task.get_name() for task in asyncio.all_tasks()})
