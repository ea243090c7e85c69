"""A virtual control plane as processes, from the objects that the operator renders."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest

from pergola.api.kinds import CRD, DEPLOYMENT, NAMESPACE
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.api.operator_v1alpha1 import Garden
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import dump, parse
from pergola.operator.components.component import Component
from pergola.operator.components.etcds.etcds import ETCDS
from pergola.operator.components.kube_apiserver.component import KUBE_APISERVER
from pergola.operator.components.kube_apiserver_exposure.services import API_SERVER_SERVICE
from pergola.operator.components.priority_classes import PRIORITY_CLASSES
from pergola.operator.components.resource_manager.virtual import bootstrap_credential
from pergola.operator.components.virtual_access import GENERIC_KUBECONFIG
from pergola.operator.garden.build import Built, build
from pergola.operator.garden.credentials import Credentials
from pergola.operator.garden.landscape import Landscape
from pergola.runtime.clock import SystemClock
from pergola.sandbox.directory import write
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.simulated.etcd_druid import ETCD
from pergola.testing.crds import is_established, served
from pergola.testing.garden import GARDEN, landscape
from pergola.testing.garden_world import GardenWorld
from pergola.testing.objects import definition
from pergola.testing.waiting import until, until_gone

COMPONENTS: Final = (ETCDS, API_SERVER_SERVICE, KUBE_APISERVER, GENERIC_KUBECONFIG)
SERVER: Final = Key("garden", "virtual-garden-kube-apiserver")
ETCD_KEYS: Final = tuple(Key("garden", f"virtual-garden-etcd-{r}") for r in ("main", "events"))
OPERATION: Final = "gardener.cloud/operation"
APPLIED: Final = {"Etcd", "Deployment", "Secret", "ConfigMap", "Service"}
PATCH: Final[JsonObject] = {
    "spec": {
        "virtualCluster": {
            "kubernetes": {"version": kubernetes_version().removeprefix("v"), "kubeAPIServer": None}
        }
    }
}
# Programs start, and keys take seconds each to generate.
pytestmark = pytest.mark.timeout(300)


def template(garden: Garden) -> Landscape:
    gates = {**landscape().feature_gates, "IstioTLSTermination": False}
    return replace(landscape(), garden=garden, credentials=Credentials(), feature_gates=gates)


@pytest.fixture
async def client(garden_world: GardenWorld) -> AsyncIterator[Client]:
    """The runtime cluster, which forgets the virtual one at the end."""
    client = garden_world.client
    await _install(client)
    yield client
    for gvk, key in ((DEPLOYMENT, SERVER), *((ETCD, each) for each in ETCD_KEYS)):
        with contextlib.suppress(NotFound):
            await client.delete(gvk, key)
            await until_gone(client, gvk, key)


async def _install(client: Client) -> None:
    crd = definition(ETCD)
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    await client.apply(crd, manager="test", force=True)
    await until(client, CRD, Key.of(crd), is_established)
    await served(client, ETCD)
    for obj in PRIORITY_CLASSES.render(landscape()).managed[0].objects:
        await client.apply(obj, manager="test", force=True)


async def apply(client: Client, found: Landscape, *components: Component) -> None:
    for component in components:
        for obj in component.objects(found).direct:
            if obj["kind"] in APPLIED:
                await client.apply(obj, manager="test", force=True)


def is_available(deployment: JsonObject) -> bool:
    status = map_at(deployment, "status")
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("availableReplicas") == deployment["spec"]["replicas"]
        and status.get("updatedReplicas") == status.get("replicas")
    )


def is_ready(etcd: JsonObject) -> bool:
    return bool(map_at(etcd, "status").get("ready")) and OPERATION not in annotations_of(etcd)


@asynccontextmanager
async def administrator(world: GardenWorld, found: Built) -> AsyncGenerator[Client]:
    """Connect to the virtual cluster with the first kubeconfig of its resource manager."""
    credential = bootstrap_credential(found.landscape)
    secret = await found.secrets.generate(credential.config, credential.options)
    kubeconfig = parse(secret.data["kubeconfig"])
    assert isinstance(kubeconfig, dict)
    maps_at(kubeconfig, "clusters")[0]["cluster"]["proxy-url"] = world.node.proxy
    file = write(world.directory / "administrator.kubeconfig", dump(kubeconfig))
    async with Client.connect(load(file)) as client:
        yield client


async def test_a_virtual_cluster_serves_with_the_rendered_flags_and_credentials(
    garden_world: GardenWorld, client: Client
) -> None:
    found = await build(
        client, apply_merge_patch(GARDEN, PATCH), template, COMPONENTS, SystemClock()
    )
    await apply(client, found.landscape, ETCDS, API_SERVER_SERVICE)
    operation: JsonObject = {"metadata": {"annotations": {OPERATION: "reconcile"}}}
    for key in ETCD_KEYS:
        await client.patch(ETCD, key, operation)
        await until(client, ETCD, key, is_ready)
    await apply(client, found.landscape, KUBE_APISERVER)
    await until(client, DEPLOYMENT, SERVER, is_available, patience=90)

    async with administrator(garden_world, found) as virtual:
        assert await virtual.get_raw("/readyz") == b"ok"
        assert await virtual.find(NAMESPACE, Key("", "kube-system"))
