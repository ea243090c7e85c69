"""A unit starts its controllers once the caches that they need are filled."""

import asyncio

from pergola.api.kinds import CONFIG_MAP
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit, Unsynced
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE


class Filling:
    """A cache that a test fills."""

    gvk = CONFIG_MAP
    problem: str | None = None
    is_outage = False

    def __init__(self) -> None:
        self.filled = asyncio.Event()

    @property
    def is_synced(self) -> bool:
        return self.filled.is_set()

    async def synced(self) -> None:
        await self.filled.wait()

    async def run(self) -> None:
        await asyncio.Event().wait()


async def test_controllers_wait_only_for_their_own_caches() -> None:
    ran = asyncio.Event()

    async def reconcile(_: str) -> Outcome:
        ran.set()
        return DONE

    made = Controller("it", reconcile, watches=[], metrics=Metrics(), at_start=["key"])
    needed, beside = Filling(), Filling()
    unit = Unit(caches=[needed], beside=[beside], controllers=made.controllers)
    running = asyncio.create_task(unit.run())
    try:
        assert not ran.is_set()
        needed.filled.set()
        async with asyncio.timeout(PATIENCE):
            await ran.wait()
        assert unit.unsynced == [Unsynced(str(CONFIG_MAP), "not listed yet", is_outage=False)]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
