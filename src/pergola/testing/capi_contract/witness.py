"""Observation of all writes to one object."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    finalizers_of,
)
from pergola.kube.client import Client
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache
from pergola.testing.capi_contract.writes import Write, foreign_writes


class Witness:
    """All states of one object since its creation.

    Args:
        ours: the resourceVersions of our own writes; may grow.
        patience: seconds to wait for expected writes.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        key: Key,
        ours: Collection[str],
        patience: float,
    ) -> None:
        self._client = client
        self._gvk = gvk
        self._key = key
        self._ours = ours
        self._patience = patience
        self._states: list[JsonObject] = []
        self._present = False
        self._changed = asyncio.Event()
        self._cache = Cache(
            client, gvk, _whole, namespace=key.namespace, fields=select_name(key.name)
        )
        self._cache.subscribe(lambda change: self._observe(change.new))

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator["Witness"]:
        """Observe the object from before its creation until the block ends."""
        following = asyncio.create_task(self._cache.run())
        try:
            await self._cache.synced()
            yield self
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    @property
    def foreign(self) -> list[Write]:
        """The writes so far that are neither ours nor core's."""
        return foreign_writes(self._states, self._ours)

    async def stays_untouched(self, seconds: float, since: int = 0) -> None:
        """Fail as soon as there is a foreign write, before or within this time.

        Args:
            since: the number of foreign writes to accept.
        """
        if await self._until(lambda: len(self.foreign) > since, seconds):
            pytest.fail(
                f"{self._gvk.kind} {self._key} is externally managed, but "
                f"{'; then '.join(map(str, self.foreign[since:]))}: look at the annotation "
                f"{MANAGED_BY} first in the reconciler, in its event filter and in each mapper",
                pytrace=False,
            )

    async def rests(self, seconds: float) -> int:
        """Wait until there are no foreign writes for some time; return their number so far."""
        while True:
            known = self.foreign
            if not await self._until(partial(self._differs, known), seconds):
                return len(known)

    async def until_foreign(self) -> None:
        """Wait for a foreign write; fail if there is none."""
        if not await self._until(lambda: bool(self.foreign), self._patience):
            pytest.fail(
                f"the provider did not write to {self._gvk.kind} {self._key} within "
                f"{self._patience:g} s: does "
                f"it run, with access to namespace {self._key.namespace}, and is the "
                "manifest complete?",
                pytrace=False,
            )

    async def until_gone(self) -> None:
        """Wait until the object is gone; fail if it stays."""
        if not await self._until(lambda: not self._present, self._patience):
            kept = ", ".join(finalizers_of(self._states[-1])) or "none"
            pytest.fail(
                f"{self._gvk.kind} {self._key} was deleted, but stays; its finalizers: {kept}",
                pytrace=False,
            )

    async def until(self, holds: Callable[[JsonObject], bool], what: str) -> None:
        """Wait until `holds` accepts the object; fail with `what` otherwise."""
        there = await self._until(lambda: self._present and holds(self._states[-1]), self._patience)
        if not there:
            pytest.fail(f"{self._gvk.kind} {self._key}: {what}", pytrace=False)

    async def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        return holds()

    def _differs(self, known: list[Write]) -> bool:
        return len(self.foreign) > len(known)

    def _observe(self, obj: JsonObject | None) -> None:
        self._present = obj is not None
        if obj is not None:
            self._states.append(obj)
        self._changed.set()


def _whole(obj: JsonObject) -> JsonObject:
    return obj
