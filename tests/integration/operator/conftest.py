"""Fixtures: the shared cluster for components, and one cluster per test worker for Gardens.

A Garden and its webhooks affect a whole cluster, so tests in one cluster run one after another.
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
from pergola.testing.shared import private
from pergola.testing.world import RecordingClient, World
from tests.support.garden_extensions import remove_resources
from tests.support.garden_fixture import garden_world
from tests.support.operator_chart import ACCOUNT, OperatorChart
from tests.support.operator_site import OperatorSite
from tests.support.service_accounts import service_account_config, until_granted

__all__ = ["garden_world"]

CHART = Path(__file__).parents[3] / "charts" / "operator"
GRANTS = ("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


@pytest.fixture(scope="module", autouse=True)
def small_keys() -> Iterator[None]:
    """Generate RSA keys of at most 2048 bits, in these modules only.

    A Garden has about fifty RSA keys. At their real sizes, they took a fifth of the CPU time of
    creating a Garden, and nothing in these tests depends on it.
    """
    generate = rsa.generate_private_key

    def small(public_exponent: int, key_size: int) -> rsa.RSAPrivateKey:
        return generate(public_exponent, min(key_size, 2048))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rsa, "generate_private_key", small)
        yield


@pytest.fixture(scope="session")
def garden_sandbox() -> Iterator[Sandbox]:
    """Yield etcd and an API server with the operator's kinds and the namespace `garden`."""
    with private(API_ONLY, prepare=_prepare) as own:
        yield own


@pytest.fixture
async def runtime(garden_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield an administrator's client, and delete Gardens and Extensions after the test."""
    async with Client.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client
        for gvk in (GARDEN, EXTENSION):
            for obj in await client.list(gvk):
                await client.delete(gvk, Key.of(obj))


@pytest.fixture
async def site(runtime: Client) -> AsyncIterator[OperatorSite]:
    """Yield the cluster while the operator's webhooks are registered and served."""
    found = OperatorSite(runtime)
    async with found.serving():
        yield found


@pytest.fixture
async def recorder(sandbox: Sandbox, cluster_client: Client) -> AsyncIterator[RecordingClient]:
    """Yield a client of the shared cluster with ManagedResources; it records its writes."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(sandbox.kubeconfig)) as client:
        yield client


@pytest.fixture
async def world(
    cluster_client: Client, recorder: RecordingClient, namespace: str
) -> AsyncIterator[World]:
    """Yield a namespace with the resource manager of the runtime cluster."""
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
    """Return the operator's access to the cluster, with exactly the permissions of its chart.

    Keep the permissions for the next test: an authorizer that notices their deletion late would
    revoke them during that test.
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
    """Yield a client with the permissions of the chart, and delete extension resources."""
    async with RecordingClient.connect(granted) as client:
        yield client
    await remove_resources(runtime)
    for found in await runtime.list(SECRET, "garden"):
        await runtime.delete(SECRET, Key.of(found))
