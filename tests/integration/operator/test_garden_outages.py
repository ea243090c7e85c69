"""A Garden is created although its clusters are unreachable for a while."""

import asyncio
from dataclasses import replace

import pytest

from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.task_names import CONNECTION
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.sandbox.simulated import Site
from pergola.testing.shared import require_images
from pergola.testing.waiting import until
from tests.support.garden_world import MANAGED, example, operating
from tests.support.proxy import CuttableProxy
from tests.support.secret_history import secret_history

pytestmark = [pytest.mark.soak("outages"), pytest.mark.timeout(1500)]

LOCAL = Key("", "local")
PATIENCE = 600.0
OUTAGE = 60.0
API_SERVER = "kube-apiserver"


@pytest.fixture(autouse=True)
def images() -> None:
    require_images("gardener-apiserver")


def last_operation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "lastOperation")


async def unreached(client: Client) -> JsonObject:
    """Return a Garden whose only problem is that the virtual cluster is unreachable."""

    def holds(garden: JsonObject) -> bool:
        failed = [error.get("taskID") for error in garden.get("status", {}).get("lastErrors", [])]
        return last_operation(garden).get("state") == "Error" and failed == [CONNECTION]

    return await until(client, GARDEN, LOCAL, holds, patience=PATIENCE)


async def test_a_garden_is_created_despite_outages(garden_world: Site) -> None:
    client, sandbox = garden_world.client, garden_world.sandbox
    own = replace(load(sandbox.kubeconfig), server=garden_world.node.proxy)
    async with (
        CuttableProxy(own) as proxy,
        secret_history(client, "garden", MANAGED) as secrets,
    ):
        to_proxy = proxy.config.server

        def reach(config: ClusterConfig) -> ClusterConfig:
            return replace(config, proxy_url=to_proxy)

        proxy.refuse()
        async with operating(garden_world, reach=reach):
            await client.create(example())
            await until(
                client,
                GARDEN,
                LOCAL,
                lambda it: last_operation(it).get("progress", 0) > 25,
                patience=PATIENCE,
            )
            await sandbox.kill(API_SERVER)
            await asyncio.sleep(OUTAGE)  # the time without an API server is the test
            await sandbox.restart(API_SERVER)

            garden = await unreached(client)
            description = last_operation(garden)["description"]
            assert description.startswith(f'task "{CONNECTION}" failed: ')
            assert description.endswith("Operation will be retried.")

            proxy.accept()
            await until(
                client,
                GARDEN,
                LOCAL,
                lambda it: last_operation(it).get("state") == "Succeeded",
                patience=PATIENCE,
            )
        assert secrets.repeated == []
        assert [name for name in secrets.lost if "bootstrap" not in name] == []
