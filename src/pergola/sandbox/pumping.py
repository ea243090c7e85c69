"""Bytes between two connections."""

import asyncio
import contextlib
from typing import Final, NamedTuple

_CHUNK: Final = 1 << 16


class Stream(NamedTuple):
    """The two ends of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def join(one: Stream, other: Stream) -> None:
    """Pass on what each side sends until both have finished, then close the second."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(one.reader, other.writer))
            group.create_task(_pump(other.reader, one.writer))
    finally:
        other.writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass  # one direction ended; `write_eof` below notifies the other side
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
