"""Steps of a Shoot that changes hands between two network extensions."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, generation_of, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Registry, apply, for_shoot
from pergola.kube.client import Client
from pergola.operator.conditions import is_true
from pergola.testing.waiting import until

_IMMUTABLE: Final = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec", "selector"),
    "Deployment": ("spec", "selector"),
    "RoleBinding": ("roleRef",),
    "Service": ("spec", "clusterIP"),
}


async def ship(seed: Client, namespace: str, origin: str, objects: list[JsonObject]) -> None:
    """Ship the objects of an extension to the Shoot, and wait until they are applied."""
    name = f"{origin}-config"
    stored = await apply(seed, for_shoot(namespace, name, Registry(*objects), origin=origin))
    generation = generation_of(stored)

    def is_applied(resource: JsonObject) -> bool:
        observed = map_at(resource, "status").get("observedGeneration")
        return observed == generation and is_true(resource, "ResourcesApplied")

    await until(seed, MANAGED_RESOURCE, Key(namespace, name), is_applied)


async def immutable_fields(shoot: Client, objects: Sequence[JsonObject]) -> dict[str, object]:
    """Return the immutable fields that the Shoot has now, by object."""
    found: dict[str, object] = {}
    for obj in objects:
        if path := _IMMUTABLE.get(obj["kind"]):
            live = await shoot.get(GroupVersionKind.of(obj), Key.of(obj))
            found[f"{obj['kind']} {Key.of(obj)}"] = map_at(live, *path[:-1]).get(path[-1])
    return found
