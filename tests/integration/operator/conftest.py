"""Fixtures: the shared cluster for components, and one per test worker for Gardens.

A Garden and its webhooks are for a whole cluster: tests in one cluster run one after another.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.crds import (
    install_crds,
    install_garden_extension_crds,
    install_operator_crds,
)
from pergola.testing.garden_extensions import remove_resources
from pergola.testing.garden_fixture import garden_world
from pergola.testing.operator_chart import ACCOUNT, OperatorChart
from pergola.testing.operator_site import OperatorSite
from pergola.testing.service_accounts import service_account_config, until_granted
from pergola.testing.shared import private
from pergola.testing.world import RecordingClient, World

__all__ = ["garden_world"]

CHART = Path(__file__).parents[3] / "charts" / "operator"
GRANTS = ("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


@pytest.fixture(scope="session", autouse=True)
def small_keys() -> Iterator[None]:
    """Generate RSA keys of 2048 bits only.

    A Garden has about fifty RSA keys. With their real sizes they took a fifth of the CPU time of a
    Garden's creation, and nothing in these tests depends on it.
    """
    generate = rsa.generate_private_key

    def small(public_exponent: int, key_size: int) -> rsa.RSAPrivateKey:
        return generate(public_exponent, min(key_size, 2048))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rsa, "generate_private_key", small)
        yield


@pytest.fixture(scope="session")
def garden_sandbox() -> Iterator[Sandbox]:
    """etcd and an API server with the operator's kinds and the namespace `garden`."""
    with private(API_ONLY, prepare=_prepare) as own:
        yield own


@pytest.fixture
async def runtime(garden_sandbox: Sandbox) -> AsyncIterator[Client]:
    """The administrator of the cluster; Gardens and Extensions go with the test."""
    async with Client.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client
        for gvk in (GARDEN, EXTENSION):
            for obj in await client.list(gvk):
                await client.delete(gvk, Key.of(obj))


@pytest.fixture
async def site(runtime: Client) -> AsyncIterator[OperatorSite]:
    """The cluster while the operator's webhooks are registered and served."""
    found = OperatorSite(runtime)
    async with found.serving():
        yield found


@pytest.fixture
async def recorder(sandbox: Sandbox, cluster_client: Client) -> AsyncIterator[RecordingClient]:
    """A client that records its writes, in the shared cluster, which serves ManagedResources."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(sandbox.kubeconfig)) as client:
        yield client


@pytest.fixture
async def world(
    cluster_client: Client, recorder: RecordingClient, namespace: str
) -> AsyncIterator[World]:
    """A namespace with the resource manager of the runtime cluster."""
    found = World(cluster_client, cluster_client, namespace)  # type: ignore[arg-type] # no record
    yield found
    await found.stop()


async def _prepare(client: Client) -> None:
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "garden"},
    }
    await install_operator_crds(client)
    await install_garden_extension_crds(client)
    await client.create(namespace)


@pytest.fixture
async def granted(runtime: Client, garden_sandbox: Sandbox) -> ClusterConfig:
    """How the operator reaches the cluster, with the permissions of its chart and no others.

    They stay for the next test: an authorizer that has not seen yet that they went would take them
    away while that runs.
    """
    objects = OperatorChart.rendered(CHART)
    grants = [obj for kind in GRANTS for obj in objects.of(kind)]
    for obj in grants:
        await runtime.apply(obj, manager="test", force=True)
    await until_granted(runtime, ACCOUNT)
    admin = load(garden_sandbox.kubeconfig)
    return await service_account_config(admin, ACCOUNT.namespace, ACCOUNT.name)


@pytest.fixture
async def client(runtime: Client, granted: ClusterConfig) -> AsyncIterator[RecordingClient]:
    """The operator, with the permissions of its chart; extension resources go with the test."""
    async with RecordingClient.connect(granted) as client:
        yield client
    await remove_resources(runtime)
    for found in await runtime.list(SECRET, "garden"):
        await runtime.delete(SECRET, Key.of(found))
