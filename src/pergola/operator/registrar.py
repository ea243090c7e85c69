"""Controllers that run only while a Garden, or its virtual cluster, exists (spec 21 §5.1, §5.3).

The process keeps running without them: its webhooks stay available while Gardens are created and
deleted.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from pergola.api.objects import name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.operator.copies import Copies
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.spans import work_until
from pergola.runtime.controlling.unit import Part, Unsynced
from pergola.runtime.logging import describe, get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("controller-registrar")

NAME: Final = "controller-registrar"

_FIRST_RETRY_SECONDS: Final = 1.0
_LAST_RETRY_SECONDS: Final = 60.0


class ForGarden(NamedTuple):
    """A controller that runs while a Garden exists.

    Attributes:
        add: Builds it. Its subscriptions to the operator's copies end with it.
    """

    name: str
    add: Callable[[], Part]


class ForVirtualCluster(NamedTuple):
    """A controller that runs while the virtual cluster of a Garden is reachable.

    Attributes:
        add: Builds it for a client of the virtual cluster, which survives new tokens and
            authorities; for another server, it is built again.
    """

    name: str
    add: Callable[[Client], Part]


class Registrar:
    """Starts and stops the controllers of a Garden.

    Args:
        gardens: Controllers that need a Garden.
        virtual_clusters: Controllers that also need its virtual cluster.

    Attributes:
        running: The running controllers.
    """

    name: Final = NAME

    def __init__(
        self,
        copies: Copies,
        virtual: VirtualCluster,
        gardens: Sequence[ForGarden],
        virtual_clusters: Sequence[ForVirtualCluster] = (),
    ) -> None:
        self._copies = copies
        self._virtual = virtual
        self._for_garden = tuple(gardens)
        self._for_virtual = tuple(virtual_clusters)
        self._gardens = _Gardens(copies)
        self.running: list[Part] = []

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches of the runtime cluster that are not live.

        Those of the virtual cluster do not count: a restart of this process cannot fix it.
        """
        names = {each.name for each in self._for_virtual}
        parts = (part for part in self.running if part.name not in names)
        return [lost for part in parts for lost in part.unsynced]

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(part.is_idle for part in self.running)

    async def synced(self) -> None:
        """Return at once: without a Garden there is nothing to wait for."""

    async def run(self) -> None:
        """Start and stop the controllers until cancelled."""
        while True:
            await self._gardens.one_exists()
            log.info("controllers of the garden start")
            try:
                await work_until(self._gardens.none_exists(), self._with_garden())
            finally:
                await self._virtual.close()
            log.info("controllers of the garden have stopped")

    async def _with_garden(self) -> None:
        async with TaskGroup() as group:
            for each in self._for_garden:
                group.create_task(self._run(each.name, each.add), name=each.name)
            group.create_task(self._virtual.while_connected(self._with_virtual_cluster))

    async def _with_virtual_cluster(self, client: Client) -> None:
        log.info("controllers of the virtual cluster start")
        async with TaskGroup() as group:
            for each in self._for_virtual:
                add = partial(each.add, client)
                group.create_task(self._run(each.name, add), name=each.name)

    async def _run(self, name: str, add: Callable[[], Part]) -> None:
        part, end_subscriptions = await self._added(name, add)
        self.running.append(part)
        try:
            await part.run()
        finally:
            self.running.remove(part)
            end_subscriptions()

    async def _added(self, name: str, add: Callable[[], Part]) -> tuple[Part, Callable[[], None]]:
        """Build a controller, retrying failures while the others run."""
        delay = _FIRST_RETRY_SECONDS
        while True:
            try:
                return self._copies.lend(add)
            except Exception as error:  # whatever the error is, the others continue
                log.error(
                    "failed adding controller to manager", controller=name, error=describe(error)
                )
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LAST_RETRY_SECONDS)


class _Gardens:
    """Observes whether a Garden exists."""

    def __init__(self, copies: Copies) -> None:
        self._exists, self._is_gone = asyncio.Event(), asyncio.Event()
        self._gardens: View[str] = View(copies.of(GARDEN), name_of)
        self._gardens.subscribe(self._changed)

    async def one_exists(self) -> None:
        """Wait until a Garden exists."""
        await self._exists.wait()

    async def none_exists(self) -> None:
        """Wait until the last Garden is gone."""
        await self._is_gone.wait()

    def _changed(self, _: Change[str]) -> None:
        exists = any(True for _ in self._gardens.items())
        now, before = self._exists, self._is_gone
        if not exists:
            now, before = before, now
        now.set()
        before.clear()
