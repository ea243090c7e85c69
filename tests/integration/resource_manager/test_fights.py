"""A writer that keeps changing or deleting an object is answered slowly, and named."""

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
from pergola.kube.errors import NotFound
from pergola.resource_manager.controllers.managed_resource.fights import BURST, INTERVAL_SECONDS
from pergola.runtime.clock import monotonic
from pergola.testing.world import World, condition, message

APPLIED = "ResourcesApplied"


async def edit(world: World, text: str) -> None:
    """Edit the ConfigMap as another field manager."""
    edited = {**world.config_map("greeting"), "data": {"text": text}}
    await world.client.apply(edited, manager="their-operator", force=True)


async def delete(world: World) -> None:
    try:
        await world.client.delete(CONFIG_MAP, world.key("greeting"))
    except NotFound:
        return


async def test_an_object_that_another_client_deletes_is_recreated_as_slowly_as_repaired(
    world: World,
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    world.recorder.taken()
    began = monotonic()
    for _ in range(30):
        await delete(world)
        await world.settled()
    creations = [w for w in world.recorder.taken() if w.startswith("create ConfigMap")]
    spaced = (monotonic() - began) / INTERVAL_SECONDS
    assert 1 <= len(creations) <= BURST + 1 + spaced


async def test_the_condition_and_an_event_name_the_other_writer_and_the_way_out(
    world: World,
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    for number in range(BURST + 1):
        await edit(world, f"bye {number}")
        await world.settled()

    fought = await world.until("demo", lambda r: "their-operator" in message(r, APPLIED))

    text = message(fought, APPLIED)
    first, remark = text.split("\n")
    assert first == "All resources are applied."
    assert remark.startswith(f'* "v1/ConfigMap/{world.namespace}/greeting" has been changed')
    assert f'annotation {marks.IGNORE}: "true" in its manifest leaves it to their-operator' in text
    assert condition(fought, APPLIED) == ("True", "ApplySucceeded")
    event = await world.reported("demo", "RepairHeldBack")
    assert event["note"] == remark.removeprefix("* ")
    assert event["type"] == "Warning"


async def test_the_condition_says_how_to_end_a_series_of_deletions(world: World) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    for _ in range(BURST + 1):
        await delete(world)
        await world.settled()

    fought = await world.until("demo", lambda r: "deleted repeatedly" in message(r, APPLIED))

    assert f'annotation {marks.MODE}: "Ignore" in its manifest' in message(fought, APPLIED)


async def test_the_remark_goes_with_the_fight(world: World) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    for number in range(BURST + 1):
        await edit(world, f"bye {number}")
        await world.settled()
    await world.until("demo", lambda r: "their-operator" in message(r, APPLIED))

    ignored = world.config_map("greeting", text="hello")
    ignored["metadata"]["annotations"] = {marks.IGNORE: "true"}
    await world.put_secret("demo", ignored)

    await world.until("demo", lambda r: message(r, APPLIED) == "All resources are applied.")
    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    assert live["data"] == {"text": f"bye {BURST}"}
