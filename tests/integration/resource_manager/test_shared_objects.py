"""Two ManagedResources with one object say so, and the other restores it when one goes."""

from pergola.api.kinds import CONFIG_MAP
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
