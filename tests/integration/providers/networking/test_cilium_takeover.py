"""A Shoot moves from the original extension for cilium to Pergola and back."""

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, generation_of, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Registry, apply, for_shoot
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.networking.cilium import Cilium
from pergola.sandbox import Sandbox
from pergola.testing.cilium_crds import cilium_crds
from pergola.testing.cilium_original import ORIGINAL, VARIANTS, original_plan
from pergola.testing.crds import gvk_of, install_crds, served
from pergola.testing.network_site import shoot_manager
from pergola.testing.originals import takeover_object
from pergola.testing.shared import private
from pergola.testing.waiting import until

NAME = "extension-networking-cilium-config"
ORIGIN = "extension-networking-cilium"
IMMUTABLE = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec", "selector"),
    "Deployment": ("spec", "selector"),
    "RoleBinding": ("roleRef",),
    "Service": ("spec", "clusterIP"),
}


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


async def ship(seed: Client, namespace: str, objects: list[JsonObject]) -> str:
    """Ship objects to the Shoot, and return status and message of `ResourcesApplied`."""
    stored = await apply(seed, for_shoot(namespace, NAME, Registry(*objects), origin=ORIGIN))
    generation = generation_of(stored)
    found = await until(
        seed, MANAGED_RESOURCE, Key(namespace, NAME), lambda obj: applied(obj, generation) == "True"
    )
    return applied(found, generation)


def applied(resource: JsonObject, generation: int) -> str:
    if map_at(resource, "status").get("observedGeneration") != generation:
        return ""
    for condition in maps_at(resource, "status", "conditions"):
        if condition["type"] == "ResourcesApplied":
            return str(condition["status"])
    return ""


async def immutable_fields(shoot: Client, objects: Sequence[JsonObject]) -> dict[str, object]:
    """Return the current immutable fields of the Shoot by object."""
    found: dict[str, object] = {}
    for obj in objects:
        if path := IMMUTABLE.get(obj["kind"]):
            live = await shoot.get(GroupVersionKind.of(obj), Key.of(obj))
            found[f"{obj['kind']} {Key.of(obj)}"] = map_at(live, *path[:-1]).get(path[-1])
    return found


@pytest.mark.parametrize("variant", VARIANTS)
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
        assert await ship(cluster_client, namespace, pergolas(variant)) == "True"
        assert await immutable_fields(shoot, shared) == before

        assert await ship(cluster_client, namespace, originals(variant)) == "True"
        assert await immutable_fields(shoot, shared) == before
