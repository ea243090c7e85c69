"""The images that monitor a Garden at work: the real operator runs the rendered objects."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from pergola.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.garden.components.component import Target
from pergola.garden.components.observability.alertmanager import ALERTMANAGER
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.observability.prometheus_operator import PROMETHEUS_OPERATOR
from pergola.garden.components.priority_classes import PRIORITY_CLASSES
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.yaml import parse
from pergola.sandbox import Sandbox
from pergola.sandbox.binaries import find
from pergola.sandbox.on_demand import PROMETHEUS_CRDS
from pergola.testing.crds import serve
from pergola.testing.shared import require_images
from pergola.testing.waiting import until
from tests.support.garden import landscape

pytestmark = [pytest.mark.soak("node-images"), pytest.mark.node]

PROMETHEUSES = GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus")
ALERTMANAGERS = GroupVersionKind("monitoring.coreos.com", "v1", "Alertmanager")
PRIORITY_CLASS = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
CLUSTER_SCOPED = {kind.kind: kind for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, PRIORITY_CLASS)}
COMPONENTS = (PRIORITY_CLASSES, ALERTMANAGER, PROMETHEUS_GARDEN, PROMETHEUS_OPERATOR)
# The groups of kinds that this cluster does not serve
ABSENT = ("autoscaling.k8s.io/", "networking.istio.io/")


async def test_the_prometheus_and_the_alertmanager_of_a_garden_become_available(
    node_sandbox: Sandbox, node_client: Client, monitoring: str
) -> None:
    objects = list(observability(monitoring))
    for obj in objects:
        with contextlib.suppress(AlreadyExists):  # cluster-scoped objects of another test
            await node_client.create(obj)

    for kind in (ALERTMANAGERS, PROMETHEUSES):
        await until(node_client, kind, Key(monitoring, "garden"), is_available)

    port = await port_of(node_sandbox, node_client, Key(monitoring, "prometheus-garden"))
    evaluated = await call(port, "/api/v1/rules")
    groups = {group["name"] for group in map_at(evaluated, "data")["groups"]}
    assert groups == set(rule_groups(objects))
    port = await port_of(node_sandbox, node_client, Key(monitoring, "alertmanager-garden"))
    assert map_at(await call(port, "/api/v2/status"), "versionInfo")["version"]


@pytest.fixture
async def monitoring(node_client: Client, node_namespace: str) -> AsyncIterator[str]:
    """Yield a namespace in a cluster with the kinds of prometheus-operator."""
    require_images(
        *("prometheus-operator", "prometheus-config-reloader", "prometheus", "alertmanager")
    )
    for file in sorted(find((PROMETHEUS_CRDS,))[PROMETHEUS_CRDS].iterdir()):
        crd = parse(file.read_text())
        assert isinstance(crd, dict)
        await serve(node_client, crd)
    yield node_namespace
    for obj in observability(node_namespace):
        if obj["kind"] in CLUSTER_SCOPED:
            with contextlib.suppress(NotFound):
                await node_client.delete(CLUSTER_SCOPED[obj["kind"]], Key.of(obj))


def observability(namespace: str) -> Iterator[JsonObject]:
    """Yield the objects of a Garden in this cluster, in a namespace instead of `garden`."""
    facts = landscape()
    for component in COMPONENTS:
        for managed in component.objects(facts).managed:
            for obj in managed.objects if managed.target is Target.RUNTIME else ():
                if obj["apiVersion"].startswith(ABSENT):
                    continue
                if map_at(obj, "metadata").get("namespace", "garden") == "garden":
                    yield moved(obj, namespace)


def moved(obj: JsonObject, namespace: str) -> JsonObject:
    text = json.dumps(obj).replace('"namespace": "garden"', f'"namespace": "{namespace}"')
    found: JsonObject = json.loads(text)
    # In a Garden, the resource manager's webhook mounts the tokens.
    found.pop("automountServiceAccountToken", None)
    return found


def rule_groups(objects: Iterable[JsonObject]) -> Iterator[str]:
    for obj in objects:
        if obj["kind"] == "PrometheusRule":
            yield from (group["name"] for group in map_at(obj, "spec")["groups"])


def is_available(obj: JsonObject) -> bool:
    conditions = {c["type"]: c["status"] for c in maps_at(obj, "status", "conditions")}
    return [conditions.get(name) for name in ("Available", "Reconciled")] == ["True"] * 2


async def port_of(sandbox: Sandbox, client: Client, key: Key) -> int:
    """Forward a port of this machine to the first port of a Service."""
    spec = map_at(await client.get(SERVICE, key), "spec")
    return await sandbox.forward(spec["clusterIP"], spec["ports"][0]["port"])


async def call(port: int, path: str) -> JsonObject:
    """Return the answer of an HTTP API on a loopback port of this machine."""

    def fetch() -> JsonObject:
        url = f"http://127.0.0.1:{port}{path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            content: JsonObject = json.load(answer)
            return content

    return await asyncio.to_thread(fetch)
