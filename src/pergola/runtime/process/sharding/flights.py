"""Track the objects that the controllers of a shard are working on."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.controller import DONE, Outcome

K = TypeVar("K")

SETTLE_SECONDS: Final = 5.0
"""The time in which an abandoned write may still take effect: the API server cancels it at once
when its connection closes, but notices that late if it is busy."""


class Flights(Generic[K]):
    """The runs of a shard's controllers, counted by object.

    Args:
        is_here: whether the shard may begin to work on an object.
    """

    def __init__(self, is_here: Callable[[K], bool]) -> None:
        self._is_here = is_here
        self._running: Counter[K] = Counter()
        self._unclear: dict[K, float] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def tracked(
        self, reconcile: Callable[[K], Awaitable[Outcome]]
    ) -> Callable[[K], Coroutine[Any, Any, Outcome]]:
        """Wrap a reconciler: run it only for objects of the shard, and count its runs."""

        async def run(key: K) -> Outcome:
            if self._closed or not self._is_here(key):
                return DONE
            self._running[key] += 1
            if self._unclear.get(key, 0.0) <= monotonic():
                self._unclear.pop(key, None)
            try:
                return await reconcile(key)
            except BaseException:
                # The run may have abandoned a write that is still under way.
                self._unclear[key] = monotonic() + SETTLE_SECONDS
                raise
            finally:
                self._end(key)

        return run

    async def landed(self, key: K) -> None:
        """Wait until no write to the object is under way; the caller must prevent new ones."""
        while self._running[key]:
            await self._change()
        await asyncio.sleep(max(0.0, self._unclear.get(key, 0.0) - monotonic()))
        self._unclear.pop(key, None)

    async def close(self) -> bool:
        """Let no further run begin, and wait for those under way.

        Returns:
            Whether every write was answered, so that another shard may begin at once.
        """
        self._closed = True
        while self._running:
            await self._change()
        return all(until <= monotonic() for until in self._unclear.values())

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _end(self, key: K) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._changed.set()
