"""Pictures of a Garden on a console: a live tree on a terminal, else one line per change."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pergola.cli.garden.status_lines import changes
from pergola.cli.garden.status_tree import tree

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from pergola.operator.reconcile.picture import Picture

_PER_SECOND: Final = 4
_MARGIN: Final = 2


async def show(
    pictures: "AsyncIterator[Picture]", console: "Console", *, every: bool = False
) -> "Picture":
    """Show pictures until there are no more, and return the last one.

    The last tree remains on the console.

    Args:
        every: Whether to show every task.
    """
    if console.is_terminal:
        return await _live(pictures, console, every=every)
    return await _lines(pictures, console, every=every)


async def _live(
    pictures: "AsyncIterator[Picture]", console: "Console", *, every: bool
) -> "Picture":
    from rich.live import Live
    from rich.text import Text

    seen: list[Picture] = []

    def now() -> "RenderableType":
        if not seen:
            return Text("reading the cluster …", style="dim")
        rows = console.height - _MARGIN
        return tree(seen[-1], datetime.now(UTC), every=every, rows=rows)

    with Live(console=console, get_renderable=now, refresh_per_second=_PER_SECOND) as live:
        async for picture in pictures:
            seen[:] = [picture]
            live.refresh()
    return seen[-1]


async def _lines(
    pictures: "AsyncIterator[Picture]", console: "Console", *, every: bool
) -> "Picture":
    last = await anext(pictures)
    console.print(tree(last, last.at, every=every))
    async for picture in pictures:
        for line in changes(last, picture):
            console.print(line, markup=False)
        last = picture
    return last
