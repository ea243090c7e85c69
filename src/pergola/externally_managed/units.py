"""The controllers of all kinds that a process serves, including kinds installed later."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from pergola.api.cluster_api import crd_name
from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, JsonObject, Key
from pergola.externally_managed.contract import ContractError
from pergola.externally_managed.kinds import Managed, managed_by_crd, managed_kind
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.externally_managed.reconcile import PLAIN
from pergola.externally_managed.sources import PlainSource, Source
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup

log = get_logger("infra-manager")


class KindUnits:
    """Builds the units of kinds.

    Args:
        sources: sources of networks in addition to ConfigMaps and Secrets, by kind and name.
        marks_ready: whether users may mark InfraClusters as ready.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        metrics: Metrics,
        *,
        sources: Mapping[GroupKind, Mapping[str, Source]] | None = None,
        marks_ready: bool = True,
    ) -> None:
        self._client = client
        self._settings = settings
        self._metrics = metrics
        self._sources = sources or {}
        self._marks_ready = marks_ready

    async def build(self, kinds: Sequence[GroupKind]) -> list[Unit]:
        """Return the units of all kinds; a kind that cannot be served yet starts when it can.

        Raises:
            ContractError: none of the kinds can be served; the text has all reasons.
        """
        units: list[Unit] = []
        problems: list[ContractError] = []
        for kind in kinds:
            try:
                units += self._units(await managed_kind(self._client, kind))
            except ContractError as error:
                problems.append(error)
                log.warning("kind not served yet", kind=str(kind), error=str(error))
                units.append(Unit(tasks=[partial(self._late, kind)]))
        if len(problems) == len(kinds):
            raise ContractError("; ".join(map(str, problems)))
        return units

    def _units(self, managed: Managed) -> list[Unit]:
        plain: dict[str, Source] = {PLAIN: PlainSource(self._client)}
        sources = plain | dict(self._sources.get(managed.gvk.group_kind, {}))
        manager = external_manager(
            self._client, managed, sources, self._settings, metrics=self._metrics
        )
        if not self._marks_ready:
            return [manager]
        by_hand = ready_by_hand(self._client, managed, self._settings, metrics=self._metrics)
        return [manager, by_hand]

    async def _late(self, kind: GroupKind) -> None:
        """Serve a kind as soon as its CRD follows a contract."""
        managed = await self._until_served(kind)
        log.info("kind served", kind=str(kind))
        async with TaskGroup() as group:
            for unit in self._units(managed):
                group.create_task(unit.run())

    async def _until_served(self, kind: GroupKind) -> Managed:
        name = crd_name(kind)
        crds = Cache(self._client, CRD, _whole, fields=select_name(name))
        changed = asyncio.Event()
        crds.subscribe(lambda _: changed.set())
        watch = asyncio.create_task(crds.run())
        try:
            while True:
                await changed.wait()
                changed.clear()
                crd = crds.get(Key("", name))
                try:
                    if crd is not None:
                        return managed_by_crd(crd, kind)
                except ContractError as error:
                    log.warning("kind not served yet", kind=str(kind), error=str(error))
        finally:
            watch.cancel()


def _whole(obj: JsonObject) -> JsonObject:
    return obj
