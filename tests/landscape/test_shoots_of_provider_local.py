"""Shoots with workers of the original's provider-local, which Pergola's operator installs.

Its machines are simulated pods: no kubelet runs in them, and their nodes are simulated as well.
"""

from typing import Final

import pytest

from pergola.api.kinds import NODE, SEED, SHOOT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.extension_api.kinds import GROUP, VERSION
from pergola.kube.client import Client
from pergola.resource_manager.controllers.node_critical_components.seen import TAINT
from pergola.sandbox.landscape import create_shoot
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, World
from tests.support.landscape_provider_local import MACHINE, has_succeeded, provider_secret

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_SERVED: Final = tuple(
    GroupVersionKind(GROUP, VERSION, kind)
    for kind in ("Infrastructure", "ControlPlane", "OperatingSystemConfig", "Worker")
)
_WORKERS: Final = 2


async def test_provider_local_makes_nodes_of_workers_and_removes_them(
    landscape_of_provider_local: World,
) -> None:
    landscape = landscape_of_provider_local
    async with landscape.opened_seed("local", provider_local=True) as seed:
        await landscape.join(seed)
        await landscape.garden.apply(provider_secret(seed), manager="test", force=True)
        key = await create_shoot(
            landscape.garden,
            {"spec": {"seedName": seed.name}},
            example="shoot-of-provider-local.yaml",
        )
        await landscape.reconciled(SHOOT, key)
        namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
        for kind in _SERVED:
            await until_succeeded(seed.site.client, kind, namespace)
        machines = await seed.site.client.list(MACHINE, namespace)
        phases = [map_at(each, "status", "currentStatus")["phase"] for each in machines]
        assert phases == ["Running"] * _WORKERS
        async with landscape.client_of(key, seed) as client:
            nodes = {name_of(node) for node in await client.list(NODE)}
            for name in nodes:
                # Pergola has seen that all critical pods of the node are ready.
                await until(client, NODE, Key("", name), is_schedulable, patience=PATIENCE)
        assert nodes == {labels_of(machine)["node"] for machine in machines}
        await landscape.delete(SHOOT, key)
        assert await seed.site.client.list(MACHINE) == []
        assert seed.refused() == []
        await landscape.delete(SEED, Key("", seed.name))


async def until_succeeded(client: Client, kind: GroupVersionKind, namespace: str) -> None:
    """Wait until the extension resources of a kind in a namespace are reconciled."""
    for found in await client.list(kind, namespace):
        await until(client, kind, Key.of(found), has_succeeded, patience=PATIENCE)


def is_schedulable(node: JsonObject) -> bool:
    return TAINT not in {each["key"] for each in maps_at(node, "spec", "taints")}
