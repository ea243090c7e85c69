"""An operator is killed after each of its tasks: nothing is lost or created twice.

Operators are separate processes, killed with SIGKILL when a task ends and before a later one
starts. Leader election is off, so that the next operator does not wait for a Lease. Both flows
have 140 boundaries.
"""

from collections.abc import Awaitable

import pytest

from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, NAMESPACE, PVC, SECRET
from pergola.api.objects import Key, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.operator.reconcile.flow_delete import DELETION
from pergola.operator.reconcile.flows import RECONCILIATION, SETUP
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.sandbox.simulated import Site
from pergola.testing.shared import require_images
from pergola.testing.waiting import until, until_gone
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import (
    CONFIRMED,
    MANAGED,
    contents,
    example,
    managed_secrets,
)
from tests.support.operator_lives import operator_lives
from tests.support.secret_history import secret_history

pytestmark = [pytest.mark.soak("kills"), pytest.mark.timeout(3000)]

LOCAL = Key("", "local")
PATIENCE = 2400.0
ENOUGH = 40


def success(client: Client) -> Awaitable[object]:
    return until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)


@pytest.fixture(autouse=True)
def images() -> None:
    require_images("gardener-apiserver")


async def test_operators_can_be_killed_after_each_task(garden_world: Site) -> None:
    client = garden_world.client
    async with (
        operator_lives(garden_world) as lives,
        secret_history(client, "garden", MANAGED) as secrets,
    ):
        await client.create(example())
        await lives.killed_until(success(client))

        claims = [name_of(claim) for claim in await client.list(PVC, "garden")]
        await lives.undisturbed_until(_is_deleted_after_another_success(garden_world))
        assert secrets.repeated == []
        assert [name for name in secrets.lost if "bootstrap" not in name] == []

        await lives.killed_until(until_gone(client, GARDEN, LOCAL, patience=PATIENCE))
        for flow in (SETUP, RECONCILIATION, DELETION):
            assert any(each.startswith(f"{flow}/") for each in lives.boundaries)
        assert len(lives.boundaries) >= ENOUGH
        assert secrets.repeated == []

        await _leaves_nothing(client)
        assert claims
        assert [name_of(claim) for claim in await client.list(PVC, "garden")] == claims
        assert lives.failures == []


async def _is_deleted_after_another_success(site: Site) -> None:
    """Check that a whole reconciliation changes nothing, and request the deletion.

    Requests need a running operator, whose webhooks review them.
    """
    client = site.client
    before = await contents(client)
    await until(client, GARDEN, LOCAL, lambda it: not has_succeeded(it), patience=PATIENCE)
    await success(client)
    assert await contents(client) == before
    async with VirtualCluster(client, reach=site.reach) as access:
        virtual = await access.client()
        assert "garden" in {name_of(each) for each in await virtual.list(NAMESPACE)}
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)


async def _leaves_nothing(client: Client) -> None:
    """Check that the deletion left as little as an undisturbed one."""
    assert await managed_secrets(client) == []
    unique = "resources.gardener.cloud/garbage-collectable-reference=true"
    for kind in (CONFIG_MAP, SECRET):
        assert await client.list(kind, "garden", labels=unique) == []
    assert await client.list(DEPLOYMENT, "garden") == []
    definitions = {name_of(each) for each in await client.list(CRD)}
    assert "etcds.druid.gardener.cloud" not in definitions
    assert "gardens.operator.gardener.cloud" in definitions
    assert await client.find(NAMESPACE, Key("", "garden")) is not None
