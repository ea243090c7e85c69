"""A Shoot moves from the original extension for cilium to Pergola and back."""

from collections.abc import AsyncIterator, Iterator

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.networking.cilium import Cilium
from pergola.sandbox import Sandbox
from pergola.testing.cilium_crds import cilium_crds
from pergola.testing.crds import gvk_of, install_crds, served
from pergola.testing.network_site import shoot_manager
from pergola.testing.shared import private
from tests.support.cilium_original import ORIGINAL, VARIANTS, original_plan
from tests.support.originals import takeover_object
from tests.support.takeover import immutable_fields, ship
from tools.soak import in_soak

ORIGIN = "extension-networking-cilium"


def pergolas(variant: str) -> list[JsonObject]:
    return list(Cilium().render(original_plan(variant)).shoot)


def originals(variant: str) -> list[JsonObject]:
    return [takeover_object(name, of) for name, of in ORIGINAL.variant(variant).items()]


@pytest.fixture
def shoot_cluster() -> Iterator[Sandbox]:
    with private() as own:
        yield own


@pytest.fixture
async def shoot(shoot_cluster: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(shoot_cluster.kubeconfig)) as client:
        for crd in cilium_crds():
            await client.apply(crd, manager="cilium-operator", force=True)
        for crd in cilium_crds():
            await served(client, gvk_of(crd))
        yield client


@pytest.mark.parametrize("variant", in_soak("originals", VARIANTS))
async def test_cilium_can_be_taken_over_in_both_directions(
    cluster_client: Client, namespace: str, shoot: Client, variant: str
) -> None:
    await install_crds(cluster_client)
    ours = {(obj["kind"], Key.of(obj)) for obj in pergolas(variant)}
    shared = [obj for obj in originals(variant) if (obj["kind"], Key.of(obj)) in ours]
    for obj in originals(variant):
        await shoot.create(obj)
    before = await immutable_fields(shoot, shared)

    async with shoot_manager(cluster_client, namespace, shoot, sync_seconds=2):
        await ship(cluster_client, namespace, ORIGIN, pergolas(variant))
        assert await immutable_fields(shoot, shared) == before

        await ship(cluster_client, namespace, ORIGIN, originals(variant))
        assert await immutable_fields(shoot, shared) == before
