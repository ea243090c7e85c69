"""Lookups of the high-availability webhook in a real cluster: spec 12 §3.3, and Beyond 2."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.admission.configurations import MUTATING
from pergola.api.kinds import CRD, DEPLOYMENT, HPA, HVPA, NAMESPACE, STATEFUL_SET
from pergola.api.objects import JsonObject, Key
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.webhooks.app import apply
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.pki import Authority
from pergola.resource_manager.webhooks.facts.environment import (
    ClusterEnvironment,
    serves_hvpas,
    version_of,
)
from pergola.resource_manager.webhooks.facts.high_availability import (
    PREFIX,
    TODAY,
    NamespaceSettings,
)
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import PATIENCE, running
from pergola.testing.world import RecordingClient
from tests.support.reviews import review_of


def reference(name: str) -> JsonObject:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def hpa(namespace: str, name: str, *, target: str, most: int) -> JsonObject:
    return {
        "apiVersion": HPA.api_version,
        "kind": HPA.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"scaleTargetRef": reference(target), "maxReplicas": most},
    }


def hvpa(namespace: str, name: str, *, most: int, deploy: bool = True) -> JsonObject:
    scaling = {"deploy": deploy, "template": {"spec": {"maxReplicas": most}}}
    return {
        "apiVersion": HVPA.api_version,
        "kind": HVPA.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetRef": reference(name), "hpa": scaling},
    }


@pytest.fixture
async def hvpas(lone_client: Client) -> AsyncIterator[None]:
    """Install Hvpas for the duration of a test."""
    crd = definition(HVPA)
    await serve(lone_client, crd)
    await until_discovered(lone_client, desired=True)
    yield
    await lone_client.delete(CRD, Key.of(crd))
    await until_discovered(lone_client, desired=False)


async def until_discovered(client: Client, *, desired: bool) -> None:
    """Wait until discovery is up to date, so that the next test gets no stale data."""
    async with asyncio.timeout(PATIENCE):
        while await is_discovered(client) != desired:
            pass


async def is_discovered(client: Client) -> bool:
    try:
        await client.get_raw("/apis/autoscaling.k8s.io/v1alpha1")
    except NotFound:
        return False
    return True


async def most(environment: ClusterEnvironment, namespace: str, name: str) -> int | None:
    return await environment.most_replicas(DEPLOYMENT, Key(namespace, name))


async def test_an_hvpa_counts_even_before_the_caches_are_filled(
    lone_client: Client, fresh: str, other: str, hvpas: None
) -> None:
    # If a workload with ten replicas counted as unscaled, it would get two.
    await lone_client.create(hpa(fresh, "a", target="web", most=4))
    await lone_client.create(hvpa(fresh, "web", most=9))
    await lone_client.create(hvpa(fresh, "big", most=10))
    await lone_client.create(hvpa(fresh, "quiet", most=10, deploy=False))
    await lone_client.create(hvpa(other, "elsewhere", most=10))

    async def known(environment: ClusterEnvironment) -> list[int | None]:
        return [await most(environment, fresh, n) for n in ("web", "big", "quiet", "elsewhere")]

    environment = ClusterEnvironment(lone_client)
    assert await known(environment) == [4, 10, None, None]
    async with running(Unit(caches=environment.caches)):
        assert await known(environment) == [4, 10, None, None]
        assert await environment.most_replicas(STATEFUL_SET, Key(fresh, "web")) is None


async def test_hvpas_are_registered_where_they_are_served(
    lone_client: Client, lone_sandbox: Sandbox, hvpas: None, tmp_path: Path
) -> None:
    assert await serves_hvpas(lone_client)
    (tmp_path / "ca.crt").write_bytes(
        Authority.create("ca", datetime.now(UTC), timedelta(days=1)).pair.public
    )
    config = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
        "webhooks": {"highAvailabilityConfig": {"enabled": True}},
    }
    (tmp_path / "config.json").write_bytes(orjson.dumps(config))
    await asyncio.to_thread(
        apply,
        config=tmp_path / "config.json",
        ca=tmp_path / "ca.crt",
        cluster=ClusterOptions(kubeconfig=lone_sandbox.kubeconfig),
    )
    registered = await lone_client.get(MUTATING, Key("", "gardener-resource-manager"))
    await lone_client.delete(MUTATING, Key.of(registered))
    (entry,) = registered["webhooks"]
    assert ["hvpas"] in [rule["resources"] for rule in entry["rules"]]


async def test_without_hvpas_workloads_are_not_scaled_by_them(
    lone_client: Client, fresh: str
) -> None:
    environment = ClusterEnvironment(lone_client)
    assert await most(environment, fresh, "web") is None
    async with running(Unit(caches=environment.caches)):
        assert await most(environment, fresh, "web") is None


async def test_autoscalers_in_unwatched_namespaces_are_read_live(
    lone_client: Client, fresh: str, other: str
) -> None:
    await lone_client.create(hpa(fresh, "web", target="web", most=4))
    await lone_client.create(hpa(other, "web", target="web", most=5))
    environment = ClusterEnvironment(lone_client, watched=[fresh])
    async with running(Unit(caches=environment.caches)):
        assert await most(environment, fresh, "web") == 4
        assert await most(environment, other, "web") == 5


async def test_a_changed_maximum_is_noticed(lone_client: Client, fresh: str) -> None:
    environment = ClusterEnvironment(lone_client)
    async with running(Unit(caches=environment.caches)):
        await lone_client.create(hpa(fresh, "web", target="web", most=4))
        await until_equal(lone_client, lambda: most(environment, fresh, "web"), 4)
        await lone_client.patch(HPA, Key(fresh, "web"), {"spec": {"maxReplicas": 6}})
        await until_equal(lone_client, lambda: most(environment, fresh, "web"), 6)
        await lone_client.delete(HPA, Key(fresh, "web"))
        await until_equal(lone_client, lambda: most(environment, fresh, "web"), None)


async def test_two_nodes_are_many_nodes(lone_client: Client) -> None:
    for name, many in (("one", False), ("two", True)):
        environment = ClusterEnvironment(lone_client)
        await lone_client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        assert await environment.many_nodes() is many
        async with running(Unit(caches=environment.caches)):
            assert await environment.many_nodes() is many


async def test_a_namespace_that_is_not_cached_is_read_live(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> None:
    annotations = {f"{PREFIX}/zones": "b,a,,b", f"{PREFIX}/zone-pinning": "T"}
    environment = ClusterEnvironment(lone_client)
    async with running(Unit(caches=environment.caches)):
        gvk = NAMESPACE
        await lone_client.patch(gvk, Key("", fresh), {"metadata": {"annotations": annotations}})
        expected = NamespaceSettings(None, ("a", "b"), pins=True)
        assert await environment.namespace(fresh) == expected
        with pytest.raises(NotFound):
            await environment.namespace("no-such-namespace")


async def test_a_request_for_a_missing_namespace_is_refused_with_500(lone_client: Client) -> None:
    handler = HighAvailability(ClusterEnvironment(lone_client), TODAY)
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    verdict = await handler(review_of(obj, namespace="no-such-namespace"))
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 500, "")
    assert "no-such-namespace" in verdict.message


async def test_the_version_of_the_cluster_is_known(lone_client: Client) -> None:
    version = await version_of(lone_client)
    assert version is not None
    assert version >= (1, 30)


async def until_equal(client: Client, ask: Any, desired: object) -> None:
    """Wait until an answer has the expected value."""
    async with asyncio.timeout(PATIENCE):
        while await ask() != desired:
            await client.get_raw("/version")
