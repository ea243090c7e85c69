"""The tasks of a Garden while it comes up: a live tree on a terminal, else occasional lines."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from pergola.operator.reconcile.picture import State

if TYPE_CHECKING:
    from pergola.cli.up.story import Story
    from pergola.operator.reconcile.picture import Picture

_STEP: Final = 10  # percent
_EVERY_SECONDS: Final = 20.0


async def show_progress(pictures: "AsyncIterator[Picture]", story: "Story") -> "Picture":
    """Show pictures until there are no more, and return the last one."""
    if story.console.is_terminal:
        from pergola.cli.garden.status_live import show

        return await show(pictures, story.console)
    return await _lines(pictures, story)


async def _lines(pictures: "AsyncIterator[Picture]", story: "Story") -> "Picture":
    loop = asyncio.get_running_loop()
    began = printed = loop.time()
    last = await anext(pictures)
    percent = -_STEP
    async for picture in pictures:
        last, now = picture, loop.time()
        if picture.operation.progress < percent + _STEP and now < printed + _EVERY_SECONDS:
            continue
        percent, printed = picture.operation.progress, now
        story.line(f"{now - began:4.0f} s {summary(picture)}")
    return last


def summary(picture: "Picture") -> str:
    """Return the progress of a Garden in one line."""
    total = sum(task.state is not State.SKIPPED for task in picture.tasks)
    done = len(list(picture.of(State.DONE)))
    text = f"{picture.operation.progress:3} %  {done} of {total} tasks done"
    failed = [task.name for task in picture.of(State.FAILED)]
    running = [task.name for task in picture.of(State.RUNNING)]
    if failed:
        return f"{text}; failed: {', '.join(failed)}"
    return f"{text}; running: {', '.join(running)}" if running else text
