"""A picture of a Garden, kept up to date by watching it and the objects of its tasks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from pergola.api.kinds import CRD, LEASE
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, metadata_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.selectors import select_name
from pergola.operator.reconcile.picture.expected import Expected, expected
from pergola.operator.reconcile.picture.operators import ELECTION, operator_problem
from pergola.operator.reconcile.picture.picture import Picture
from pergola.operator.reconcile.picture.taking import picture_of
from pergola.operator.reconcile.picture.times import Times
from pergola.operator.run.observed import Template
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock, SystemClock, monotonic
from pergola.runtime.task_group import gathered

_SETTLED_SECONDS: Final = 0.2
_FIRST_SECONDS: Final = 30.0
_ASKED_SECONDS: Final = 30.0


class NotWatched(OperatorError):
    """A kind that a picture needs cannot be watched; the text gives the reason."""


@asynccontextmanager
async def following(
    client: Client, garden: str, template: Template, clock: Clock | None = None
) -> AsyncGenerator[AsyncIterator[Picture]]:
    """Yield the pictures of a Garden: the current one, and one after each change.

    Sends only get, list and watch, for Gardens, their Extensions, and the kinds that tasks wait
    for. The iterator ends when the Garden is gone.

    Raises:
        NotWatched: A kind cannot be watched, for example because of missing permissions.
        KubeError: The API server refused, or did not answer.
    """
    follower = _Follower(client, Key("", garden), template, clock or SystemClock())
    try:
        yield follower.pictures()
    finally:
        await follower.stop()


class _Follower:
    """Watches the objects in a picture; adds watches as the Garden changes, and keeps them."""

    def __init__(self, client: Client, garden: Key, template: Template, clock: Clock) -> None:
        self._client = client
        self._garden = garden
        self._template = template
        self._clock = clock
        self._changed = asyncio.Event()
        self._caches: dict[tuple[GroupVersionKind, str | None], Cache[JsonObject]] = {}
        self._running: list[asyncio.Task[None]] = []
        self._expected = Expected()
        self._times = Times()
        self._asked = -_ASKED_SECONDS
        self._operator = ""

    async def pictures(self) -> AsyncGenerator[Picture]:
        """Yield a picture now and after each change, until the Garden is gone."""
        [gardens] = await self._watched([(GARDEN, None)], name=self._garden.name)
        last: Picture | None = None
        while True:
            garden = gardens.get(self._garden)
            picture = await self._picture(garden)
            if last is None or picture.is_news(last):
                yield picture
                if last is not None and last.exists and garden is None:
                    return
                last = picture
            await self._next_change()

    async def _next_change(self) -> None:
        """Return after a change, or in time to check whether an operator is still running."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ASKED_SECONDS):
                await self._changed.wait()
                await asyncio.sleep(_SETTLED_SECONDS)
        self._changed.clear()

    async def stop(self) -> None:
        """Stop all watches."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _picture(self, garden: JsonObject | None) -> Picture:
        now = self._clock.now()
        if garden is None:
            return Picture(garden=self._garden.name, at=now, exists=False, is_over=True)
        if not self._expected.is_of(garden):
            self._expected = await expected(self._client, garden, self._template, self._clock)
            awaited = self._expected.identities
            await self._watched(sorted({(gvk, key.namespace or None) for gvk, key in awaited}))
        operator = await self._operator_problem(now)
        picture = picture_of(garden, self._expected.steps, self._live, now, operator)
        note = self._outage() or self._expected.problem or picture.note
        return self._times.added_to(replace(picture, note=note))

    def _outage(self) -> str:
        """Return why the picture may be outdated; empty if it is not."""
        lost = [cache for cache in self._caches.values() if not cache.is_synced]
        return f"this is out of date, since the watch failed: {lost[0].problem}" if lost else ""

    async def _operator_problem(self, now: datetime) -> str:
        """Return why no operator is running, by a read: a process that ends causes no event."""
        if monotonic() - self._asked >= _ASKED_SECONDS:
            self._asked = monotonic()
            with suppress(KubeError):
                lease = await self._client.find(LEASE, ELECTION)
                self._operator = operator_problem(lease, now)
        return self._operator

    def _live(self, identity: Identity) -> JsonObject | None:
        cache = self._caches[identity.gvk, identity.key.namespace or None]
        return cache.get(identity.key)

    async def _watched(
        self, desired: Iterable[tuple[GroupVersionKind, str | None]], name: str = ""
    ) -> list[Cache[JsonObject]]:
        """Return the caches of these kinds and namespaces, each with its first list."""
        desired = list(desired)
        for gvk, namespace in desired:
            if (gvk, namespace) not in self._caches:
                fields = select_name(name) if name else None
                cache = Cache(self._client, gvk, _kept, namespace=namespace, fields=fields)
                cache.subscribe(lambda change: self._changes(change.initial))
                self._caches[gvk, namespace] = cache
                self._running.append(asyncio.create_task(cache.run()))
        caches = [self._caches[each] for each in desired]
        await gathered(map(_first_list, caches))
        return caches

    def _changes(self, is_initial: bool) -> None:
        self._changed.set()
        if not is_initial:
            # The change may be the definition of a kind that was not served.
            for cache in self._caches.values():
                if cache.served is False:
                    cache.wake()


async def _first_list(cache: Cache[JsonObject]) -> None:
    try:
        async with asyncio.timeout(_FIRST_SECONDS):
            await cache.synced()
    except TimeoutError:
        where = f" in namespace {cache.namespace}" if cache.namespace else ""
        problem = cache.problem or f"no answer within {_FIRST_SECONDS:g} seconds"
        raise NotWatched(f"cannot watch {cache.gvk.kind}{where}: {problem}") from None


def _kept(obj: JsonObject) -> JsonObject:
    """Return the parts of an object that the rules read; specs of definitions are large."""
    metadata = {name: each for name, each in metadata_of(obj).items() if name != "managedFields"}
    left_out = {"spec"} if obj.get("kind") == CRD.kind else set()
    return {name: each for name, each in obj.items() if name not in left_out} | {
        "metadata": metadata
    }
