"""A Shoot moves from the original extension for calico to Pergola and back."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, generation_of, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Registry, apply, for_shoot
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.networking.calico import Calico
from pergola.providers.networking.calico.render.crds import (
    calico_crds,
    network_attachment_definition,
)
from pergola.sandbox import Sandbox
from pergola.testing.calico_original import ORIGINAL, VARIANTS, calico_plan
from pergola.testing.crds import gvk_of, install_crds, served
from pergola.testing.network_site import shoot_manager
from pergola.testing.originals import takeover_object
from pergola.testing.shared import private
from pergola.testing.waiting import until

NAME = "extension-networking-calico-config"
ORIGIN = "extension-networking-calico"
IMMUTABLE = {
    "DaemonSet": ("spec", "selector"),
    "Deployment": ("spec", "selector"),
    "Service": ("spec", "clusterIP"),
}
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


async def ship(seed: Client, namespace: str, objects: list[JsonObject]) -> str:
    """Ship objects to the Shoot, and return status and message of `ResourcesApplied`."""
    stored = await apply(seed, for_shoot(namespace, NAME, Registry(*objects), origin=ORIGIN))
    generation = generation_of(stored)
    found = await until(
        seed, MANAGED_RESOURCE, Key(namespace, NAME), lambda obj: bool(applied(obj, generation))
    )
    return applied(found, generation)


def applied(resource: JsonObject, generation: int) -> str:
    if map_at(resource, "status").get("observedGeneration") != generation:
        return ""
    for condition in maps_at(resource, "status", "conditions"):
        if condition["type"] == "ResourcesApplied" and condition["status"] in ("True", "False"):
            problem = "" if condition["status"] == "True" else f": {condition['message']}"
            return f"{condition['status']}{problem}"
    return ""


async def immutable_fields(shoot: Client, objects: Sequence[JsonObject]) -> dict[str, object]:
    """Return the current immutable fields of the Shoot by object."""
    found: dict[str, object] = {}
    for obj in objects:
        if path := IMMUTABLE.get(obj["kind"]):
            live = await shoot.get(GroupVersionKind.of(obj), Key.of(obj))
            found[f"{obj['kind']} {Key.of(obj)}"] = map_at(live, path[0]).get(path[1])
    return found


@pytest.mark.parametrize("variant", VARIANTS)
async def test_calico_can_be_taken_over_in_both_directions(
    cluster_client: Client, namespace: str, shoot: Client, variant: str
) -> None:
    await install_crds(cluster_client)
    await existing(shoot, originals(variant))
    before = await immutable_fields(shoot, originals(variant))

    async with shoot_manager(cluster_client, namespace, shoot, sync_seconds=2):
        assert await ship(cluster_client, namespace, pergolas(variant)) == "True"
        assert await immutable_fields(shoot, originals(variant)) == before

        theirs = [*CRDS, *originals(variant)]
        assert await ship(cluster_client, namespace, theirs) == "True"
        assert await immutable_fields(shoot, originals(variant)) == before
