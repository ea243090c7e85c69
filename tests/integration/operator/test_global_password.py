"""The password of the Seeds' observability hosts, in both clusters (spec 20 §17.2)."""

import fcntl
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Final

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of, name_of
from pergola.garden.components.observability.global_password import NAME, password_secret
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.kube.kubeconfig import load
from pergola.operator.reconcile.global_password import replicate
from pergola.operator.run.build import Built
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from pergola.secrets_manager import SecretsManager
from pergola.testing.world import RecordingClient
from tests.support.garden import landscape

GARDEN: Final = "garden"
ROLE: Final = {"gardener.cloud/role": "global-monitoring"}
REPLICA: Final = {"gardener.cloud/purpose": "global-monitoring-secret-replica"}


def provided(name: str) -> JsonObject:
    """Return the Secret of a user, or of gardener-controller-manager."""
    metadata: JsonObject = {"namespace": GARDEN, "name": name, "labels": ROLE}
    data = {"username": "dXM=", "password": "MQ=="}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


class Clusters:
    """A runtime cluster and a virtual one, with clients that record their writes."""

    def __init__(self, runtime: RecordingClient, virtual: RecordingClient) -> None:
        self.runtime = runtime
        self.virtual = virtual

    async def replicate(self, version: str = "v1.150.0") -> str:
        """Run the task, and return the name of the Secret that Prometheus learns afterwards."""
        clock = SystemClock()
        secrets = await SecretsManager.open(self.runtime, GARDEN, "gardener-operator", clock=clock)
        built = Built(landscape(gardener_version=version), secrets)
        access = _Connected(self.virtual)
        run = Run(
            client=self.runtime,
            clock=clock,
            deployer=Deployer(self.runtime),
            virtual=access,
            built=built,
        )
        await replicate(run)
        learnt = await password_secret(run.current(), self.runtime)
        await secrets.cleanup()
        return learnt

    async def passwords(self, client: Client) -> list[JsonObject]:
        return [each for each in await client.list(SECRET, GARDEN) if "observ" in name_of(each)]

    async def clear(self) -> None:
        """Delete all passwords, including those that other tests left in the shared clusters."""
        for client in (self.runtime, self.virtual):
            for each in await self.passwords(client):
                await client.delete(SECRET, Key.of(each))


class _Connected(VirtualCluster):
    """A virtual cluster with a given client."""

    def __init__(self, given: Client) -> None:
        super().__init__(given)
        self._given = given

    async def client(self) -> Client:
        return self._given


@pytest.fixture
def sole_user(second_sandbox: Sandbox) -> Iterator[None]:
    """Keep other workers from using the namespace `garden` of the shared cluster."""
    with (second_sandbox.directory / "global-password.turn").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
async def clusters(
    garden_sandbox: Sandbox, second_sandbox: Sandbox, sole_user: None
) -> AsyncIterator[Clusters]:
    async with (
        RecordingClient.connect(load(garden_sandbox.kubeconfig)) as runtime,
        RecordingClient.connect(load(second_sandbox.kubeconfig)) as virtual,
    ):
        with suppress(AlreadyExists):
            await virtual.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GARDEN}}
            )
        found = Clusters(runtime, virtual)
        await found.clear()
        yield found
        await found.clear()


async def test_the_password_is_generated_once_and_replicated_without_its_prefix(
    clusters: Clusters,
) -> None:
    name = await clusters.replicate()
    [generated] = await clusters.passwords(clusters.runtime)
    [replica] = await clusters.passwords(clusters.virtual)

    assert name == name_of(generated)
    assert name.startswith(f"{NAME}-")
    assert ROLE.items() <= labels_of(generated).items()
    assert name_of(replica) == name.removeprefix("global-")
    assert labels_of(replica) == REPLICA | ROLE | {"last-rotation-initiation-time": ""}
    assert (replica["data"], replica["immutable"]) == (generated["data"], True)

    clusters.runtime.taken()
    clusters.virtual.taken()
    assert await clusters.replicate() == name
    assert (clusters.runtime.taken(), clusters.virtual.taken()) == ([], [])


async def test_the_copy_of_a_recreated_immutable_secret_is_replaced(clusters: Clusters) -> None:
    first = {**provided("our-observability"), "immutable": True}
    again = {**first, "type": "example.org/password", "data": {**first["data"], "password": "Mg=="}}
    await clusters.runtime.create(first)
    await clusters.replicate()
    await clusters.runtime.delete(SECRET, Key.of(first))
    await clusters.runtime.create(again)

    await clusters.replicate()

    [replica] = await clusters.passwords(clusters.virtual)
    assert (replica["data"], replica["type"]) == (again["data"], again["type"])


async def test_the_secret_of_a_user_is_used_unchanged(clusters: Clusters) -> None:
    await clusters.replicate()
    await clusters.runtime.create(provided("our-observability"))

    assert await clusters.replicate() == "our-observability"

    [left] = await clusters.passwords(clusters.runtime)
    [replica] = await clusters.passwords(clusters.virtual)
    assert name_of(left) == name_of(replica) == "our-observability"
    assert labels_of(replica) == REPLICA | ROLE


async def test_several_secrets_of_users_are_an_error_with_their_names(clusters: Clusters) -> None:
    for name in ("observability-a", "observability-b"):
        await clusters.runtime.create(provided(name))

    with pytest.raises(OperatorError, match=r"garden/observability-a, garden/observability-b"):
        await clusters.replicate()
    assert await clusters.passwords(clusters.virtual) == []


async def test_up_to_gardener_1_149_the_password_comes_from_the_virtual_cluster(
    clusters: Clusters,
) -> None:
    await clusters.virtual.create(provided("observability-ingress-1"))

    assert await clusters.replicate("v1.149.2") == "global-observability-ingress-1"

    [copy] = await clusters.passwords(clusters.runtime)
    assert labels_of(copy) == REPLICA
