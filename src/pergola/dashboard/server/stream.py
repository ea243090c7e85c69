"""The feed as server-sent events for one viewer: first everything, then changes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject
from pergola.dashboard.access.viewer import Viewer, still_sees
from pergola.dashboard.server.shared import Shared
from pergola.dashboard.server.sse import message
from pergola.dashboard.server.visible import Visible
from pergola.dashboard.state.board import Board
from pergola.dashboard.state.feed import Changes, Position
from pergola.dashboard.state.scope import Item
from pergola.runtime.clock import Clock

SETTLED_SECONDS: Final = 0.05
"""Changes within this time are combined into one message: a page is redrawn once per message."""
BEAT_SECONDS: Final = 15.0


class Stream:
    """The messages to one open page.

    Args:
        shared: The messages of all pages.
        position: The page's position before it lost its connection; None for a new page. If its
            viewer's permissions may have changed, it starts again.
        beat: The interval of heartbeats in seconds; permissions are checked with each.
    """

    def __init__(
        self,
        board: Board,
        viewer: Viewer,
        clock: Clock,
        shared: Shared,
        position: Position | None,
        beat: float = BEAT_SECONDS,
    ):
        self._board = board
        self._viewer = viewer
        self._clock = clock
        self._shared = shared
        self._beat = beat
        self._position = position if viewer.sees_all else None
        self._visible = None if viewer.sees_all else Visible(viewer)

    async def messages(self) -> AsyncGenerator[bytes]:
        """Yield messages until the page disconnects, or the session ends."""
        now = asyncio.get_running_loop().time
        due = now()
        while await still_sees(self._viewer):
            if self._visible and await self._visible.has_changed():
                self._position = None
            changes = self._board.feed.since(self._position)
            difference = b""
            if self._position != changes.position:
                self._position = changes.position
                difference = await self._difference(changes)
            if difference:
                yield difference
            if difference or now() >= due:
                yield message("status", self._status())
                due = now() + self._beat
            await self._next(changes.position, due)

    async def _next(self, position: Position, due: float) -> None:
        """Return after a change, or when a heartbeat is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._board.feed.beyond(position)
                await asyncio.sleep(SETTLED_SECONDS)

    async def _difference(self, changes: Changes) -> bytes:
        """Return a message with changes; nothing if the viewer may see none of them.

        Only those who see all learn the position, which tells how much changes elsewhere.
        """
        items: Sequence[Item] = changes.items
        gone: Sequence[str] = changes.gone
        if self._visible:
            items, gone = await self._visible.of(changes)
            if not (items or gone or changes.is_complete):
                return b""
        position = "" if self._visible else str(changes.position)

        def build(name: str) -> bytes:
            data = {"items": [item.data() for item in items], "gone": gone}
            return message(name, data, id=position)

        if not changes.is_complete:
            return build("changes")
        seen = self._visible.places if self._visible else None
        return self._shared.everything(changes.position, seen, partial(build, "everything"))

    def _status(self) -> JsonObject:
        problems = [*self._board.problems(), *self._viewer.problems()]
        return {"now": timestamp(self._clock.now()), "problems": problems}
