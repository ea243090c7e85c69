"""A Garden whose credentials and rotations are real, and whose components are hollow.

Its API servers have their objects, because rotations roll out keys to them. The work of others,
such as running pods, appears to be done at once, so that a whole rotation takes a second.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final, TypeAlias

from pergola.api.kinds import DEPLOYMENT, SECRET, SEED
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    labels_of,
)
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.flow.metrics import FlowMetrics
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import (
    Component,
    Removable,
    Rendered,
    always,
    finished,
    learn_nothing,
)
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER
from pergola.garden.components.virtual_access import access_secret
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests.shoot_access import requests_token
from pergola.operator.reconcile.own_objects import OwnObjects
from pergola.operator.reconcile.reconcile import GardenReconciler, Settings
from pergola.operator.reconcile.status import Operator
from pergola.operator.seeds import SeedWatch
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup
from pergola.testing.crds import (
    definition,
    delete_definition,
    install_definitions,
    install_operator_crds,
    serve,
)
from tests.support.garden_run import GivenVirtualCluster
from tests.support.gardens import MINIMAL
from tests.support.seeds import gardenlets

LOCAL: Final = Key.of(MINIMAL)
NAMESPACE: Final = "garden"

_React: TypeAlias = Callable[[Client, Key, JsonObject], Awaitable[None]]

_SYNC_PERIOD: Final = 1e7
"""Seconds: long enough that a schedule alone brings a reconciliation."""
_RENEWED_AT: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
_REAL: Final = (KUBE_APISERVER, GARDENER_APISERVER)
_LATER: Final = "2999-01-01T00:00:00Z"
_USED: Final = (
    "servicemonitors.monitoring.coreos.com",
    "verticalpodautoscalers.autoscaling.k8s.io",
)
_GARDENER: Final = {
    "ControllerDeployment": "Cluster",
    "ControllerRegistration": "Cluster",
    "InternalSecret": "Namespaced",
    "Seed": "Cluster",
    "ShootState": "Namespaced",
}


def _hollow(component: Component) -> Component:
    """Return a component with the same credentials and tasks, but without objects."""
    return replace(
        component,
        name=f"hollow-{component.name}",
        render=lambda _: Rendered(),
        learn=learn_nothing,
        finish=finished,
        before=(),
        then=(),
        absent=always,
        removable=Removable(),
    )


COMPONENTS: Final = tuple(each if each in _REAL else _hollow(each) for each in CATALOG)

SETTINGS: Final = Settings(
    template=template(OperatorConfiguration(), images({}), "v1.34.2", garden_webhooks),
    operator=Operator("id", "operator", "v1.150.0"),
    sync_period=_SYNC_PERIOD,
    components=COMPONENTS,
)


def reconciler(
    runtime: Client, virtual: Client, clock: Clock, events: Recorder | None = None
) -> GardenReconciler:
    """Return the operator's reconciler of hollow Gardens.

    Args:
        events: By default, its Events are not sent.
    """
    access = GivenVirtualCluster(virtual)
    events = events or Recorder(runtime, "garden-controller", clock=clock)
    flows = Metrics().register(FlowMetrics)
    seeds, own = SeedWatch(access), OwnObjects(runtime, [])
    return GardenReconciler(runtime, access, seeds, own, SETTINGS, clock, events, flows)


async def install_runtime(client: Client) -> None:
    """Create the objects that a hollow Garden expects in its runtime cluster."""
    await install_operator_crds(client)
    await install_definitions(client, *_USED)
    await client.create(_manifest("v1", "Namespace", "", NAMESPACE))
    # These two are in ManagedResources, which no resource manager applies here.
    await client.create(_deployment("gardener-apiserver"))
    service = _manifest("v1", "Service", NAMESPACE, "gardener-apiserver")
    await client.create({**service, "spec": {"ports": [{"port": 443}]}})
    for name in ("a", "b", "c"):
        secret = access_secret(name)
        secret["metadata"]["annotations"][_RENEWED_AT] = _LATER
        await client.create(secret)
    await client.create(MINIMAL)


async def install_virtual(client: Client, seeds: int) -> None:
    """Create the objects that a hollow Garden expects in its virtual cluster."""
    await serve(client, *map(_definition, _GARDENER))
    for name in (NAMESPACE, "gardener-system-public"):
        await client.apply(_manifest("v1", "Namespace", "", name), manager="test", force=True)
    for number in range(seeds):
        await client.create(_manifest(SEED.api_version, SEED.kind, "", f"s{number}"))


async def uninstall_virtual(client: Client) -> None:
    """Delete the kinds that `install_virtual` installed, with their objects."""
    for kind in _GARDENER:
        await delete_definition(client, Key.of(_definition(kind)))


@asynccontextmanager
async def everything_works(runtime: Client, virtual: Client) -> AsyncGenerator[None]:
    """Report success at once in place of components, resource managers and gardenlets."""
    async with gardenlets(virtual), TaskGroup() as group:
        tasks = [
            group.create_task(_follow(runtime, DEPLOYMENT, _rolled_out)),
            group.create_task(_follow(runtime, MANAGED_RESOURCE, _applied)),
            group.create_task(_follow(runtime, SECRET, _renewed)),
        ]
        yield
        for task in tasks:
            task.cancel()


async def _follow(client: Client, gvk: GroupVersionKind, react: _React) -> None:
    """Call `react` for each object of a kind whenever one of them changes."""
    async with aclosing(states.all_watched(client, gvk)) as collections:
        async for collection in collections:
            for key, obj in collection.items():
                with suppress(NotFound):
                    await react(client, key, obj)


async def _rolled_out(client: Client, key: Key, _: JsonObject) -> None:
    live = await client.get(DEPLOYMENT, key)
    replicas = live["spec"].get("replicas", 1)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    status: JsonObject = {
        "observedGeneration": generation_of(live),
        **dict.fromkeys(counts, replicas),
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }
    await _report(client, DEPLOYMENT, live, status)


async def _applied(client: Client, key: Key, _: JsonObject) -> None:
    live = await client.get(MANAGED_RESOURCE, key)
    found = {
        "ResourcesApplied": "True",
        "ResourcesHealthy": "True",
        "ResourcesProgressing": "False",
    }
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "Simulated",
            "message": "",
            "lastTransitionTime": _LATER,
            "lastUpdateTime": _LATER,
        }
        for kind, status in found.items()
    ]
    status = {"observedGeneration": generation_of(live), "conditions": conditions}
    await _report(client, MANAGED_RESOURCE, live, status)


async def _report(
    client: Client, gvk: GroupVersionKind, live: JsonObject, status: JsonObject
) -> None:
    seen = live.get("status") or {}
    if seen.get("observedGeneration") != status["observedGeneration"]:
        await client.patch(gvk, Key.of(live), {"status": status}, subresource="status")


async def _renewed(client: Client, key: Key, secret: JsonObject) -> None:
    is_requested = requests_token().items() <= labels_of(secret).items()
    if is_requested and _RENEWED_AT not in annotations_of(secret):
        await client.patch(SECRET, key, {"metadata": {"annotations": {_RENEWED_AT: _LATER}}})


def _deployment(name: str) -> JsonObject:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": name}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {**_manifest("apps/v1", "Deployment", NAMESPACE, name), "spec": spec}


def _manifest(api_version: str, kind: str, namespace: str, name: str) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _definition(kind: str) -> JsonObject:
    return definition(GroupVersionKind(SEED.group, SEED.version, kind), scope=_GARDENER[kind])
