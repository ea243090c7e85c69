"""The controllers of all kinds that a process serves, as the CRDs of the kinds say.

A provider may be upgraded while the process runs: its CRD then names another version, or follows
another contract.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from pergola.api.cluster_api import crd_name
from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key
from pergola.externally_managed.contract import ContractError
from pergola.externally_managed.kinds import Managed, managed_by_crd, managed_kind
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.externally_managed.reconcile import PLAIN
from pergola.externally_managed.sources import PlainSource, Source
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit, Unsynced
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup

log = get_logger("infra-manager")
_DISCOVERY_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.5


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

    async def build(self, kinds: Sequence[GroupKind]) -> list["ServedKind"]:
        """Return all kinds; one that cannot be served yet starts when it can.

        Raises:
            ContractError: none of the kinds can be served; the text has all reasons.
        """
        served: list[ServedKind] = []
        problems: list[ContractError] = []
        for kind in kinds:
            managed: Managed | None = None
            try:
                managed = await managed_kind(self._client, kind)
            except ContractError as error:
                problems.append(error)
                log.warning("kind not served yet", kind=str(kind), error=str(error))
            served.append(ServedKind(self._client, kind, self._units, managed))
        if len(problems) == len(kinds):
            raise ContractError("; ".join(map(str, problems)))
        return served

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


class ServedKind:
    """A part of a process that serves one kind, with new units whenever its CRD says otherwise.

    A CRD that follows no contract, or is gone, changes nothing: the units wait for its objects.

    Args:
        units: Builds the units.
        managed: What the CRD says now; None if that is not usable yet.
    """

    def __init__(
        self,
        client: Client,
        kind: GroupKind,
        units: Callable[[Managed], Sequence[Unit]],
        managed: Managed | None,
    ) -> None:
        self.name = f"infra-manager-{kind.kind.lower()}"
        self._client = client
        self._kind = kind
        self._crd = Key("", crd_name(kind))
        self._crds = Cache(client, CRD, _whole, fields=select_name(self._crd.name))
        self._changed = asyncio.Event()
        self._crds.subscribe(lambda _: self._changed.set())
        self._build = units
        self._managed = managed
        self._units: Sequence[Unit] = units(managed) if managed else ()

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches of its units that are not live, each with the reason."""
        return [each for unit in self._units for each in unit.unsynced]

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return all(unit.is_idle for unit in self._units)

    async def synced(self) -> None:
        """Wait until the first lists of its units are complete."""
        for unit in self._units:
            await unit.synced()

    async def run(self) -> None:
        """Serve the kind until cancelled, which may happen at any await."""
        async with TaskGroup() as group:
            group.create_task(self._crds.run(), name=f"watch {self._crd.name}")
            while True:
                work = group.create_task(self._work(), name=self.name)
                self._managed = await self._other()
                await self._until_discovered(self._managed.gvk)
                work.cancel()
                await asyncio.wait([work])
                contract = self._managed.contract.version
                log.info("kind served", kind=str(self._managed.gvk), contract=contract)
                self._units = self._build(self._managed)

    async def _work(self) -> None:
        async with TaskGroup() as group:
            for unit in self._units:
                group.create_task(unit.run(), name=unit.name)

    async def _other(self) -> Managed:
        """Return what the CRD says once it differs from what is served."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            crd = self._crds.get(self._crd)
            try:
                found = managed_by_crd(crd, self._kind) if crd else None
            except ContractError as error:
                log.warning("kind not served", kind=str(self._kind), error=str(error))
                continue
            if found not in (None, self._managed):
                return found

    async def _until_discovered(self, gvk: GroupVersionKind) -> None:
        """Wait until the API server serves what the CRD says, which takes a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DISCOVERY_SECONDS):
                while True:
                    with suppress(KubeError):
                        await self._client.resource(gvk)
                        return
                    await asyncio.sleep(_PAUSE_SECONDS)


def _whole(obj: JsonObject) -> JsonObject:
    return obj
