"""A virtual control plane runs as processes, from objects that the operator renders."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from pergola.api.kinds import (
    CLUSTER_ROLE_BINDING,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE_ACCOUNT,
)
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    map_at,
    uid_of,
)
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER
from pergola.garden.components.kube_apiserver_exposure.services import API_SERVER_SERVICE
from pergola.garden.components.kube_controller_manager import KUBE_CONTROLLER_MANAGER
from pergola.garden.components.priority_classes import PRIORITY_CLASSES
from pergola.garden.components.resource_manager.runtime import RESOURCE_MANAGER
from pergola.garden.components.resource_manager.virtual import (
    BOOTSTRAP,
    VIRTUAL_RESOURCE_MANAGER,
    bootstrap_credentials,
    render_bootstrap,
)
from pergola.garden.components.virtual_access import GENERIC_KUBECONFIG
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.health import check, progressing
from pergola.health.conditions import Requirement, requires
from pergola.health.pod_trouble import pod_trouble
from pergola.kube.client import Client
from pergola.kube.kubeconfig import parse_cluster
from pergola.kube.patches import apply_merge_patch
from pergola.manifests import manifest
from pergola.operator.run.build import Built, build
from pergola.operator.run.deploy import Deployer
from pergola.runtime.clock import SystemClock
from pergola.sandbox import components as sandbox_components
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.simulated import Site
from pergola.sandbox.simulated.etcd_druid import ETCD
from pergola.secrets_manager import ManagedSecret
from pergola.testing.crds import install_garden_crds
from pergola.testing.waiting import PATIENCE, until, until_gone
from tests.support.garden import GARDEN, landscape

BASE: Final = (ETCDS, API_SERVER_SERVICE, KUBE_APISERVER, GENERIC_KUBECONFIG)
MANAGERS: Final = (RESOURCE_MANAGER, VIRTUAL_RESOURCE_MANAGER, KUBE_CONTROLLER_MANAGER)
SERVER: Final = Key("garden", "virtual-garden-kube-apiserver")
ETCD_KEYS: Final = tuple(Key("garden", f"virtual-garden-etcd-{r}") for r in ("main", "events"))
OPERATION: Final = "gardener.cloud/operation"
LEFT_OUT: Final = {"ServiceMonitor", "PrometheusRule", "VerticalPodAutoscaler"}
PATCH: Final[JsonObject] = {
    "spec": {
        "virtualCluster": {
            "kubernetes": {"version": kubernetes_version().removeprefix("v"), "kubeAPIServer": None}
        }
    }
}
MEMBER: Final = Key("garden", "virtual-garden-etcd-main-0")
PORTS: Final = (2379, 2380, 8080, 8081, 8443, 10250, 10257, 10443)
ACCESS: Final = Key("garden", "shoot-access-gardener-resource-manager")


def template(garden: Garden) -> Landscape:
    gates = {**landscape().feature_gates, "IstioTLSTermination": False}
    return replace(landscape(), garden=garden, credentials=Credentials(), feature_gates=gates)


class VirtualGarden:
    """Components of a Garden, applied as by the operator."""

    def __init__(self, site: Site, found: Built) -> None:
        self.site = site
        self.client = site.client
        self.found = found

    async def apply(self, *components: Component) -> None:
        for component in components:
            await self.found.generate(component.credentials(self.landscape))
            await self.apply_rendered(component.objects(self.landscape))

    @property
    def landscape(self) -> Landscape:
        """The landscape with all credentials generated so far."""
        generated = Credentials(dict(self.found.secrets.generated))
        return self.found.landscape.with_credentials(generated)

    async def apply_rendered(self, rendered: Rendered) -> None:
        direct = tuple(obj for obj in rendered.direct if obj["kind"] not in LEFT_OUT)
        await Deployer(self.client).apply(replace(rendered, direct=direct))

    async def available(self, name: str) -> None:
        key = Key("garden", name)
        await until(self.client, DEPLOYMENT, key, is_rolled_out)

    async def etcds_ready(self) -> None:
        for key in ETCD_KEYS:
            await until(self.client, ETCD, key, is_ready)

    @asynccontextmanager
    async def administrator(self) -> AsyncGenerator[Client]:
        """Connect to the virtual cluster with the first kubeconfig of its resource manager."""
        kubeconfig = (await self.bootstrap()).data["kubeconfig"]
        config = parse_cluster(kubeconfig, "the Secret of its resource manager")
        async with Client.connect(self.site.reach(config)) as client:
            yield client

    async def bootstrap(self) -> ManagedSecret:
        """Generate the credential with which the virtual resource manager starts."""
        await self.found.generate(bootstrap_credentials(self.landscape))
        return self.found.secrets.current(BOOTSTRAP)


def is_rolled_out(deployment: JsonObject) -> bool:
    return check(deployment) is None and progressing(deployment) is None


def is_successor(pod: JsonObject, old: JsonObject) -> bool:
    return uid_of(pod) != uid_of(old) and requires(Requirement("Ready"))(pod) is None


def is_ready(etcd: JsonObject) -> bool:
    return bool(map_at(etcd, "status").get("ready")) and OPERATION not in annotations_of(etcd)


def has_token(secret: JsonObject) -> bool:
    return "token" in map_at(secret, "data")


@pytest.fixture
async def garden(garden_world: Site) -> VirtualGarden:
    """Yield a landscape with its credentials, of which nothing runs yet."""
    client = garden_world.client
    await install_garden_crds(client, "etcd")
    for obj in PRIORITY_CLASSES.render(landscape()).managed[0].objects:
        await client.apply(obj, manager="test", force=True)
    described = apply_merge_patch(GARDEN, PATCH)
    garden = VirtualGarden(garden_world, await build(client, described, template, SystemClock()))
    await garden.found.generate_authorities()
    for component in (*BASE, *MANAGERS):
        await garden.found.generate(component.credentials(garden.landscape))
    return garden


@pytest.fixture
def occupied() -> Iterator[None]:
    """Listen on all addresses at ports of a Garden's pods, as other servers may."""
    with ExitStack() as stack:
        for port in PORTS:
            with suppress(OSError):  # somebody else occupies it
                stack.enter_context(socket.create_server(("0.0.0.0", port)))  # noqa: S104
        yield


@pytest.mark.soak("chaos")
async def test_a_virtual_cluster_serves_with_the_rendered_flags_and_credentials(
    garden: VirtualGarden,
) -> None:
    await garden.apply(ETCDS, API_SERVER_SERVICE)
    operation: JsonObject = {"metadata": {"annotations": {OPERATION: "reconcile"}}}
    for key in ETCD_KEYS:
        await garden.client.patch(ETCD, key, operation)
    await garden.etcds_ready()
    await garden.apply(KUBE_APISERVER)
    await garden.available(SERVER.name)
    async with garden.administrator() as virtual:
        assert await virtual.get_raw("/readyz") == b"ok"
        await virtual.create(manifest("v1", "Namespace", "kept"))

        # Data outlives the etcd, and a deleted pod is recreated with another address.
        for key in ETCD_KEYS:
            await garden.client.delete(ETCD, key)
            await until_gone(garden.client, ETCD, key)
        await garden.apply(ETCDS)
        await garden.etcds_ready()
        pod = await garden.client.get(POD, MEMBER)
        await garden.client.delete(POD, MEMBER)
        await until(garden.client, POD, MEMBER, lambda new: is_successor(new, pod))
        await until(virtual, NAMESPACE, Key("", "kept"), lambda _: True)


@pytest.mark.soak("chaos")
@pytest.mark.usefixtures("occupied")
async def test_both_resource_managers_work_with_their_own_permissions(
    garden: VirtualGarden,
) -> None:
    await garden.apply(RESOURCE_MANAGER)
    await garden.available("gardener-resource-manager")
    # From here on, the API server asks its webhooks about every `Etcd`.
    await garden.apply(ETCDS, API_SERVER_SERVICE, KUBE_APISERVER)
    await garden.available(SERVER.name)
    await garden.bootstrap()
    bootstrapping = garden.landscape
    await garden.apply_rendered(render_bootstrap(bootstrapping))
    await until(garden.client, SECRET, ACCESS, has_token)
    await garden.apply(VIRTUAL_RESOURCE_MANAGER, KUBE_CONTROLLER_MANAGER)
    await garden.available("virtual-garden-gardener-resource-manager")
    await garden.available("virtual-garden-kube-controller-manager")
    binding = Key("", "gardener.cloud:target:kube-controller-manager")
    account = Key("kept", "default")
    async with garden.administrator() as virtual:
        await until(virtual, CLUSTER_ROLE_BINDING, binding, lambda _: True)
        await virtual.create(manifest("v1", "Namespace", "kept"))
        await until(virtual, SERVICE_ACCOUNT, account, lambda _: True)


async def test_a_pod_says_why_its_process_ended(garden_world: Site) -> None:
    client, key = garden_world.client, Key("garden", "broken")
    await client.create(_deployment(key, args=["--nonsense"]))
    await _until_pod(client, key, partial(_has_trouble, "nonsense"))
    await client.delete(DEPLOYMENT, key)
    await until_gone(client, DEPLOYMENT, key)


async def test_a_pod_waits_for_its_service_account(garden_world: Site) -> None:
    client, key = garden_world.client, Key("garden", "accountless")
    account = manifest("v1", "ServiceAccount", key.name, namespace=key.namespace)
    await client.create(account)
    gates = [{"name": "example.org/gate"}]
    await client.create(
        _deployment(key, args=["--nonsense"], serviceAccountName=key.name, schedulingGates=gates)
    )
    pod = await _until_pod(client, key, lambda _: True)
    await client.delete(SERVICE_ACCOUNT, key)
    await client.patch(POD, Key.of(pod), {"spec": {"schedulingGates": None}})
    await _until_pod(client, key, lambda pod: f'"{key.name}" not found' in str(pod["status"]))
    await client.create(account)
    await _until_pod(client, key, partial(_has_trouble, "nonsense"))
    await client.delete(DEPLOYMENT, key)
    await client.delete(SERVICE_ACCOUNT, key)
    await until_gone(client, DEPLOYMENT, key)


def _deployment(key: Key, *, args: list[str], **spec: object) -> JsonObject:
    """Return a Deployment of kube-controller-managers with these arguments and other fields."""
    labels = {"app": key.name}
    offer = named([sandbox_components.CONTROLLER_MANAGER])[0]
    container = {"name": "main", "image": f"{offer.repository}:{offer.version}", "args": args}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    return manifest(
        *("apps/v1", "Deployment", key.name),
        namespace=key.namespace,
        spec={"selector": {"matchLabels": labels}, "template": template},
    )


async def _until_pod(
    client: Client, key: Key, accepted: Callable[[JsonObject], bool]
) -> JsonObject:
    """Wait until a pod of a Deployment is accepted; return it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for pod in await client.list(POD, key.namespace, labels=f"app={key.name}"):
                if accepted(pod):
                    return pod
            await asyncio.sleep(0.1)


def _has_trouble(problem: str, pod: JsonObject) -> bool:
    trouble = pod_trouble(pod)
    return trouble is not None and problem in trouble.problem
