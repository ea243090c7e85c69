"""Connections that servers accept, and bytes between two of them."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from pergola.runtime.task_group import TaskGroup

_CHUNK: Final = 1 << 16


class Stream(NamedTuple):
    """The two ends of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


Serve = Callable[[Stream], Coroutine[Any, Any, None]]
Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class Connections:
    """The accepted connections of one or more servers, none of which outlives `end`.

    `asyncio.run` misses the coroutine of a connection that is accepted while it cancels tasks, and
    complains that a pending task was destroyed.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def served_by(self, serve: Serve) -> Accept:
        """Return the callback for `asyncio.start_server`; `serve` closes the writer."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._ended:
                writer.close()
                return
            task = asyncio.create_task(serve(Stream(reader, writer)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def end(self) -> None:
        """Cancel all connections and wait for them; close the servers first."""
        self._ended = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def join(one: Stream, other: Stream) -> None:
    """Pass on what each side sends until both have finished, then close the second."""
    try:
        async with TaskGroup() as group:
            group.create_task(_pump(one.reader, other.writer))
            group.create_task(_pump(other.reader, one.writer))
    finally:
        other.writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except (OSError, RuntimeError):  # uvloop raises the latter for a transport that is closed
        pass  # one direction ended; `write_eof` below notifies the other side
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
