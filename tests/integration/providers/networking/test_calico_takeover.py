"""A Shoot moves from the original extension for calico to Pergola and back."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.networking.calico import Calico
from pergola.providers.networking.calico.render.crds import (
    calico_crds,
    network_attachment_definition,
)
from pergola.sandbox import Sandbox
from pergola.testing.crds import gvk_of, install_crds, served
from pergola.testing.network_site import shoot_manager
from pergola.testing.shared import private
from tests.support.calico_original import ORIGINAL, VARIANTS, calico_plan
from tests.support.originals import takeover_object
from tests.support.takeover import immutable_fields, ship
from tools.soak import in_soak

ORIGIN = "extension-networking-calico"
CRDS = [*calico_crds(), network_attachment_definition()]


def pergolas(variant: str) -> list[JsonObject]:
    return list(Calico().render(calico_plan(variant)).shoot)


def originals(variant: str) -> list[JsonObject]:
    """Return the original's objects; only the names of its CRDs matter, which equal ours."""
    return [
        takeover_object(name, of)
        for name, of in ORIGINAL.variant(variant).items()
        if not name.startswith(CRD.kind)
    ]


@pytest.fixture
def shoot_cluster() -> Iterator[Sandbox]:
    with private() as own:
        yield own


@pytest.fixture
async def shoot(shoot_cluster: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(shoot_cluster.kubeconfig)) as client:
        for crd in CRDS:
            await client.apply(crd, manager="original", force=True)
        for crd in CRDS:
            await served(client, gvk_of(crd))
        yield client


async def existing(shoot: Client, objects: Sequence[JsonObject]) -> None:
    """Create these objects in the Shoot, as another extension left them."""
    for obj in objects:
        if GroupVersionKind.of(obj) != CRD:
            await shoot.create(obj)


@pytest.mark.parametrize("variant", in_soak("originals", VARIANTS))
async def test_calico_can_be_taken_over_in_both_directions(
    cluster_client: Client, namespace: str, shoot: Client, variant: str
) -> None:
    await install_crds(cluster_client)
    await existing(shoot, originals(variant))
    before = await immutable_fields(shoot, originals(variant))

    async with shoot_manager(cluster_client, namespace, shoot, sync_seconds=2):
        await ship(cluster_client, namespace, ORIGIN, pergolas(variant))
        assert await immutable_fields(shoot, originals(variant)) == before

        theirs = [*CRDS, *originals(variant)]
        await ship(cluster_client, namespace, ORIGIN, theirs)
        assert await immutable_fields(shoot, originals(variant)) == before
