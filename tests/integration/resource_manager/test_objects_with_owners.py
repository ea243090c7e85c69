"""An object that the garbage collector deletes with its owner is not created again."""

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import map_at, owner_reference
from pergola.testing.world import World, message

APPLIED = "ResourcesApplied"


async def test_an_object_whose_owner_goes_is_not_created_again(world: World) -> None:
    await world.start(sync_period=3600.0)
    described = world.config_map("owner")
    waits = {**map_at(described, "metadata"), "finalizers": ["example.org/waits"]}
    owner = await world.client.create({**described, "metadata": waits})
    owned = world.config_map("x")
    metadata = {**map_at(owned, "metadata"), "ownerReferences": [owner_reference(owner)]}
    await world.create("one", {**owned, "metadata": metadata})
    await world.healthy("one")

    await world.client.delete(CONFIG_MAP, world.key("owner"), propagation="Foreground")

    text = "its owner ConfigMap owner is gone or being deleted"
    await world.until("one", lambda r: text in message(r, APPLIED))
    assert await world.client.find(CONFIG_MAP, world.key("x")) is None
    await world.client.patch(CONFIG_MAP, world.key("owner"), {"metadata": {"finalizers": None}})
    await world.put_secret("one", owned)
    await world.healthy("one")
    assert await world.client.find(CONFIG_MAP, world.key("x")) is not None
