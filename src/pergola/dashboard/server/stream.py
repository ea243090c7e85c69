"""The feed as server-sent events: everything first, then what changes, for one viewer."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject
from pergola.dashboard.access.viewer import Viewer
from pergola.dashboard.server.sse import message
from pergola.dashboard.state.board import Board
from pergola.dashboard.state.feed import Changes, Position
from pergola.dashboard.state.scope import Item
from pergola.runtime.clock import Clock

SETTLED_SECONDS: Final = 0.05
"""Changes within this time are one message: a page draws each message once."""
BEAT_SECONDS: Final = 15.0


class Stream:
    """The messages to one open page.

    Args:
        position: Of the page before it lost its connection; None for a new one. Those whose
            permissions may have changed start again.
    """

    def __init__(self, board: Board, viewer: Viewer, clock: Clock, position: Position | None):
        self._board = board
        self._viewer = viewer
        self._clock = clock
        self._position = position if viewer.sees_all else None
        self._shown: set[str] = set()

    async def messages(self) -> AsyncGenerator[bytes]:
        """Yield messages until the page goes away."""
        while True:
            changes = self._board.feed.since(self._position)
            if self._position != changes.position:
                self._position = changes.position
                yield await self._difference(changes)
            yield message("status", self._status())
            await self._next(changes.position)

    async def _next(self, position: Position) -> None:
        """Return after a change, or when it is time for a sign of life."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                await self._board.feed.beyond(position)
                await asyncio.sleep(SETTLED_SECONDS)

    async def _difference(self, changes: Changes) -> bytes:
        items, gone = await self._visible(changes.items), changes.gone
        if not self._viewer.sees_all:
            gone = [name for name in gone if name in self._shown]
            self._shown.update(item.id for item in items)
        name = "everything" if changes.is_complete else "changes"
        data = {"items": [item.data() for item in items], "gone": gone}
        return message(name, data, id=str(changes.position))

    async def _visible(self, items: Sequence[Item]) -> Sequence[Item]:
        if self._viewer.sees_all:
            return items
        allowed = await self._viewer.may_see([item.scope for item in items])
        return [item for item, is_allowed in zip(items, allowed, strict=True) if is_allowed]

    def _status(self) -> JsonObject:
        return {"now": timestamp(self._clock.now()), "problems": self._board.problems()}
