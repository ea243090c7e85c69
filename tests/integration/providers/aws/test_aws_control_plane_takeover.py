"""A ControlPlane of the original is taken over and handed back, with real resource managers.

The original's objects are the answers of its own charts, as the comparison has recorded them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest

from conformance.facts import read
from conformance.subjects.aws_control_planes import AwsControlPlaneObjects
from pergola.api.managed_resource_status import applied_problem
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, metadata_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import apply
from pergola.extension_api.cluster import CLUSTER, Cluster
from pergola.extensions import Context
from pergola.extensions.control_planes import Rendered, resources
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_extension_crds, install_garden_crds
from pergola.testing.shared import private
from pergola.testing.waiting import until, until_gone

NAMESPACE: Final = "shoot--demo--blue"
DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")
RESTARTED: Final = {
    # Images of the original's next version.
    "Deployment aws-load-balancer-controller",
    "Deployment csi-driver-controller",
    "Deployment efs-csi-controller",
    "DaemonSet csi-driver-node",
    "DaemonSet csi-driver-efs-node",
    # The recorded objects name certificates that the oracle invents.
    "Deployment cloud-controller-manager",
    # With a workload identity, our checksum of the credentials leaves the token out.
    "Deployment aws-custom-route-controller",
    "Deployment aws-ipam-controller",
}
"""Workloads whose pods a takeover may replace."""
_NUMBERED: Final = {"Deployment", "DaemonSet"}


@pytest.fixture
def cluster() -> Iterator[Sandbox]:
    with private() as own:
        yield own


@pytest.fixture
async def client(cluster: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of a cluster that is a seed and, in kube-system, the Shoot."""
    async with Client.connect(load(cluster.kubeconfig)) as found:
        await install_extension_crds(found)
        await install_garden_crds(found, "vpa", "prometheus-operator")
        await found.create(namespace_object())
        yield found


def questions() -> list[tuple[JsonObject, Rendered]]:
    """Return recorded ControlPlanes with the original's objects; those with most options."""
    found = [
        (fact.question, rendered(fact.answer.output))
        for fact in read(AwsControlPlaneObjects())
        if fact.answer.output
    ]
    sizes = {id(question): len(objects.shoot) for question, objects in found}
    found.sort(key=lambda each: -sizes[id(each[0])])
    return [found[0], found[-1]]


def rendered(output: JsonObject) -> Rendered:
    return Rendered(
        configuration=output["configuration"],
        seed=output["seed"],
        shoot=[with_bundle(each) for each in output["shoot"]],
        definitions=output["definitions"],
        storage_classes=output["storageClasses"],
    )


def with_bundle(obj: JsonObject) -> JsonObject:
    """Return an object whose bundle of certificates an API server accepts."""
    if not obj["kind"].endswith("WebhookConfiguration"):
        return obj
    text = orjson.dumps(obj).decode()
    for webhook in obj["webhooks"]:
        text = text.replace(f'"caBundle":"{webhook["clientConfig"]["caBundle"]}"', '"caBundle":""')
    found: JsonObject = orjson.loads(text)
    return found


@pytest.mark.parametrize("which", [0, 1], ids=["many options", "few options"])
async def test_a_takeover_in_both_directions_recreates_nothing(client: Client, which: int) -> None:
    question, original = questions()[which]
    server = await client.create(api_server())
    await client.create(question["secret"])
    await client.create(question["cluster"])
    async with managers(client):
        await ship(client, original)
        before = await living(client)
        assert len(before) > 60

        await AwsControlPlane().reconcile(await context(client), question["controlPlane"])
        await settled(client)
        taken_over = await living(client)
        assert uids(taken_over) == uids(before)
        assert restarted(before, taken_over) <= RESTARTED

        await ship(client, original)
        handed_back = await living(client)
        assert uids(handed_back) == uids(before)
        assert restarted(taken_over, handed_back) <= RESTARTED
        same = await client.get(DEPLOYMENT, Key.of(server))
        assert (uid_of(same), generation(same)) == (uid_of(server), generation(server))

        await AwsControlPlane().delete(await context(client), question["controlPlane"])
        for name in resources.REMOVAL:
            await until_gone(client, MANAGED_RESOURCE, Key(NAMESPACE, name))


@asynccontextmanager
async def managers(client: Client) -> AsyncGenerator[None]:
    """Run the resource managers of the seed and of the Shoot."""
    tasks = [
        asyncio.create_task(
            ResourceManager(
                client,
                client,
                Options(resource_class=name, source_namespaces=(NAMESPACE,)),
            ).run()
        )
        for name in ("seed", Options().resource_class)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def ship(client: Client, objects: Rendered) -> None:
    """Write the ManagedResources as the original does, and wait until they are applied."""
    for bundle in resources.bundles(NAMESPACE, objects):
        await apply(client, bundle)
    await settled(client)


async def settled(client: Client) -> None:
    for name in (*resources.KEPT_IN_SHOOT, resources.SEED, resources.CONFIGURATION):
        key = Key(NAMESPACE, name)
        await until(
            client, MANAGED_RESOURCE, key, lambda each: applied_problem(each) is None, patience=120
        )


async def living(client: Client) -> dict[str, JsonObject]:
    """Return all objects that the ManagedResources have applied."""
    found: dict[str, JsonObject] = {}
    for resource in await client.list(MANAGED_RESOURCE, NAMESPACE):
        for each in map_at(resource, "status").get("resources") or []:
            gvk = GroupVersionKind.parse(each["apiVersion"], each["kind"])
            key = Key(each.get("namespace") or "", each["name"])
            found[f"{gvk.kind} {key.name}"] = await client.get(gvk, key)
    return found


def uids(objects: dict[str, JsonObject]) -> dict[str, str]:
    return {name: uid_of(obj) for name, obj in objects.items()}


def restarted(before: dict[str, JsonObject], after: dict[str, JsonObject]) -> set[str]:
    """Return the workloads whose spec has changed."""
    return {
        name
        for name, obj in after.items()
        if obj["kind"] in _NUMBERED and generation(obj) != generation(before[name])
    }


def generation(obj: JsonObject) -> Any:
    return metadata_of(obj)["generation"]


async def context(client: Client) -> Context:
    async def nothing(*_: object) -> None: ...

    return Context(
        client=client,
        cluster=Cluster.from_object(await client.get(CLUSTER, Key("", NAMESPACE))),
        namespace=NAMESPACE,
        clock=SystemClock(),
        progress=nothing,
        save=nothing,
    )


def namespace_object() -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def api_server() -> JsonObject:
    container = {"name": "kube-apiserver", "image": "registry.example.org/kube-apiserver"}
    labels = {"app": "kubernetes", "role": "apiserver"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kube-apiserver", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
