"""Two ManagedResources with one object say so, and the other restores it when one goes."""

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import annotations_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.testing.world import World, message

APPLIED = "ResourcesApplied"


async def two(world: World) -> None:
    """Create two ManagedResources that describe the same ConfigMap differently."""
    await world.create("one", world.config_map("x", text="one"))
    await world.healthy("one")
    await world.create("two", world.config_map("x", text="two"), world.config_map("other"))
    await until_named(world, "one", "two")
    await until_named(world, "two", "one")


async def until_named(world: World, name: str, other: str) -> None:
    text = f"is also described by ManagedResource {world.namespace}/{other}"
    await world.until(name, lambda r: text in message(r, APPLIED))


async def test_both_name_the_other_until_one_no_longer_describes_it(world: World) -> None:
    await world.start(sync_period=3600.0)
    await two(world)

    await world.put_secret("two", world.config_map("other"))

    for name in ("one", "two"):
        await world.until(name, lambda r: message(r, APPLIED) == "All resources are applied.")
    await world.until_object(CONFIG_MAP, world.key("x"), lambda o: o["data"] == {"text": "one"})


async def test_the_object_is_restored_at_once_when_either_goes(world: World) -> None:
    await world.start(sync_period=3600.0)
    await two(world)
    live = await world.client.get(CONFIG_MAP, world.key("x"))
    last = live["data"]["text"]
    rest = "two" if last == "one" else "one"

    await world.delete(last)

    await world.until_gone(MANAGED_RESOURCE, world.key(last))
    await world.until_object(CONFIG_MAP, world.key("x"), lambda o: o["data"] == {"text": rest})
    await world.until(rest, lambda r: message(r, APPLIED) == "All resources are applied.")


async def test_an_event_names_the_other(world: World) -> None:
    await world.start(sync_period=3600.0)
    await two(world)

    for name in ("one", "two"):
        await world.reported(name, "DescribedTwice")


async def origin(world: World) -> str:
    """Return the name of the ManagedResource in the origin of the ConfigMap."""
    live = await world.client.get(CONFIG_MAP, world.key("x"))
    return annotations_of(live)[marks.ORIGIN].rpartition("/")[2]


async def alike(world: World) -> None:
    """Create two ManagedResources that describe the same ConfigMap alike."""
    await world.create("one", world.config_map("x", text="same"))
    await world.healthy("one")
    await world.create("two", world.config_map("x", text="same"), world.config_map("other"))
    await until_named(world, "one", "two")
    await until_named(world, "two", "one")
    await world.settled()


async def test_two_alike_write_once_each_and_repair_once(world: World) -> None:
    await world.start(sync_period=1.0)
    await alike(world)
    assert await origin(world) == "two"
    world.recorder.taken()

    for number in range(3):
        await world.client.patch(CONFIG_MAP, world.key("x"), {"data": {"text": f"bye {number}"}})
        await world.until_object(CONFIG_MAP, world.key("x"), lambda o: o["data"]["text"] == "same")
        await world.settled()
    # Both may try at once; the second one finds the object repaired.
    updates = [w for w in world.recorder.taken() if w.startswith("update ConfigMap")]
    assert 3 <= len(updates) <= 6


async def test_an_object_that_moves_to_another_managed_resource_is_never_deleted(
    world: World,
) -> None:
    await world.start(sync_period=3600.0)
    await alike(world)
    before = await world.client.get(CONFIG_MAP, world.key("x"))
    last = await origin(world)
    other = "two" if last == "one" else "one"

    await world.put_secret(last, world.config_map("another"))

    await world.until_object(
        CONFIG_MAP,
        world.key("x"),
        lambda o: annotations_of(o)[marks.ORIGIN].endswith(f"/{other}"),
    )
    await world.until(other, lambda r: message(r, APPLIED) == "All resources are applied.")
    live = await world.client.get(CONFIG_MAP, world.key("x"))
    assert uid_of(live) == uid_of(before)
