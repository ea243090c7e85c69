"""Waiting for the expected state of objects on a real API server: by watching, not by polling.

```python
service = await until(client, SERVICE, Key("demo", "web"), lambda obj: "web" in labels_of(obj))
await until_gone(client, POLICY, Key("demo", "ingress-to-web-tcp-80"))
async with running(unit):
    await settled(unit, client)
```
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import Unreachable
from pergola.kube.selectors import select_name
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit, Watching
from pergola.runtime.task_group import gathered

PATIENCE: Final = 180.0
"""Seconds after which a wait fails: a busy machine may be ten times slower."""
_IDLE_CHECKS: Final = 3
_UNSERVED_PAUSE: Final = 0.2  # seconds
_RUNNING: Final[list[Unit]] = []


async def until(
    client: Client,
    gvk: GroupVersionKind,
    key: Key,
    holds: Callable[[JsonObject], bool],
    *,
    patience: float = PATIENCE,
) -> JsonObject:
    """Wait until an object exists and `holds` accepts it; fail with its last state."""
    last: JsonObject | None = None
    try:
        async with asyncio.timeout(patience), _states(client, gvk, key) as states:
            async for last in states:
                if last is not None and holds(last):
                    return last
    except TimeoutError:
        pass
    raise AssertionError(f"{gvk.kind} {key} did not get there; last seen: {_short(last)}")


async def until_gone(
    client: Client, gvk: GroupVersionKind, key: Key, *, patience: float = PATIENCE
) -> None:
    """Wait until an object is gone."""
    last: JsonObject | None = None
    try:
        async with asyncio.timeout(patience), _states(client, gvk, key) as states:
            async for last in states:
                if last is None:
                    return
    except TimeoutError:
        pass
    raise AssertionError(f"{gvk.kind} {key} is still there: {_short(last)}")


class MayBeIdle(Protocol):
    """An object with queues."""

    @property
    def is_idle(self) -> bool:
        """Whether all queues are empty."""
        ...


async def settled(
    working: MayBeIdle,
    client: Client,
    *,
    caches: Iterable[Watching] = (),
    patience: float = PATIENCE,
) -> None:
    """Wait until the queues are empty and no cache lags behind the server.

    A server under load notifies its watches late.

    Args:
        caches: more caches to wait for, in addition to those of all units that are `running`.
    """
    followed = [cache for cache in caches if isinstance(cache, Cache)]
    async with asyncio.timeout(patience):
        while True:
            idle = 0
            while idle < _IDLE_CHECKS:
                idle = idle + 1 if working.is_idle else 0
                await client.get_raw("/version")
            if not await _is_behind(followed) and working.is_idle:
                return


async def noticed(*, patience: float = PATIENCE) -> None:
    """Wait until all units that are `running` have seen all changes so far, even if still busy."""
    async with asyncio.timeout(patience):
        while await _is_behind():
            pass


async def _is_behind(more: Sequence[Cache[Any]] = ()) -> bool:
    return any(await gathered(_lags(cache) for cache in (*_caches(), *more)))


async def _lags(cache: Cache[Any]) -> bool:
    try:
        return await cache.is_behind()
    except Unreachable:
        # Its client may be about to learn a new address or authority.
        return True


def _caches() -> list[Cache[Any]]:
    return [c for unit in _RUNNING for c in unit.caches if isinstance(c, Cache)]


@asynccontextmanager
async def running(*units: Unit) -> AsyncGenerator[None]:
    """Runs units until the block ends; their caches are filled when it begins.

    The end is like a kill, at any await. An exception of a unit is raised here.
    """
    tasks = [asyncio.create_task(unit.run()) for unit in units]
    _RUNNING.extend(units)
    try:
        for task, unit in zip(tasks, units, strict=True):
            filling = asyncio.ensure_future(unit.synced())
            await asyncio.wait({filling, task}, return_when=asyncio.FIRST_COMPLETED)
            filling.cancel()
            if task.done():
                task.result()
        yield
    finally:
        for task, unit in zip(tasks, units, strict=True):
            _RUNNING.remove(unit)
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


@asynccontextmanager
async def _states(
    client: Client, gvk: GroupVersionKind, key: Key
) -> AsyncGenerator[AsyncIterator[JsonObject | None]]:
    """Yield the current state of an object and all later ones, through faults of the server."""
    changed: asyncio.Queue[JsonObject | None] = asyncio.Queue()
    cache = Cache(
        client, gvk, _whole, namespace=key.namespace or None, fields=select_name(key.name)
    )
    cache.subscribe(lambda change: changed.put_nowait(change.new))

    async def states() -> AsyncIterator[JsonObject | None]:
        await cache.synced()
        if changed.empty():
            yield cache.get(key)
        while True:
            yield await changed.get()

    following = [asyncio.create_task(cache.run()), asyncio.create_task(_insist(cache))]
    try:
        yield states()
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _insist(cache: Cache[JsonObject]) -> None:
    """Look for an unserved kind more often than caches do, which pause longer than tests wait."""
    while True:
        await asyncio.sleep(_UNSERVED_PAUSE)
        if cache.served is False:
            cache.wake()


def _whole(obj: JsonObject) -> JsonObject:
    return obj


def _short(obj: JsonObject | None) -> str:
    if obj is None:
        return "nothing"
    seen = {name: value for name, value in obj.items() if name != "data"}
    return orjson.dumps(seen).decode()
