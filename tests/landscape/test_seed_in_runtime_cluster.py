"""A Seed that is also the runtime cluster of its Garden."""

import pytest

from pergola.api.kinds import NAMESPACE, SEED, SHOOT
from pergola.api.objects import Key, map_at, uid_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.operator.gardenlet.names import GARDENLET
from pergola.sandbox.landscape import create_shoot
from pergola.testing.waiting import until
from tests.support.garden_states import has_succeeded
from tests.support.landscape import PATIENCE, World, uids

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_NAME = "runtime"
_GARDEN = Key("", "local")


async def test_garden_and_seed_share_a_cluster_and_keep_what_is_the_other_ones(
    landscape: World,
) -> None:
    runtime = landscape.clusters.garden.client
    garden = uid_of(await runtime.get(GARDEN, _GARDEN))
    before = await uids(runtime)
    await landscape.join_here(_NAME)
    key = await create_shoot(
        landscape.garden, {"metadata": {"name": "inside"}, "spec": {"seedName": _NAME}}
    )
    await landscape.healthy(SHOOT, key)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    assert await runtime.list(MANAGED_RESOURCE, namespace)
    await landscape.delete(SHOOT, key)
    assert await runtime.find(NAMESPACE, Key("", namespace)) is None
    await landscape.garden.delete(GARDENLET, Key("garden", _NAME))
    await landscape.delete(SEED, Key("", _NAME))
    found = await until(runtime, GARDEN, _GARDEN, has_succeeded, patience=PATIENCE)
    assert uid_of(found) == garden
    after = await uids(runtime)
    assert {each: after.get(each) for each in before} == before
