"""Messages between a process and its webhook workers: lines of JSON on a socket pair.

The task comes first. The worker then reports that it serves, or why it cannot, and answers each
request for its metrics. It ends when the socket closes, which also happens if the parent is killed.
"""

import asyncio
import socket
from typing import Final

import orjson

from pergola.api.objects import JsonObject

SERVING: Final = "serving"
FAILED: Final = "failed"
METRICS: Final = "metrics"
_LONGEST: Final = 64 * 1024 * 1024


class Channel:
    """One side of the socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, **message: object) -> None:
        """Send a message.

        Raises:
            OSError: the other side is gone.
        """
        self._writer.write(orjson.dumps(message) + b"\n")
        await self._writer.drain()

    async def receive(self) -> JsonObject | None:
        """Return the next message, or None once the other side is gone."""
        try:
            line = await self._reader.readline()
        except OSError:
            return None
        if not line.endswith(b"\n"):
            return None
        message: JsonObject = orjson.loads(line)
        return message

    def close(self) -> None:
        """Close the channel."""
        self._writer.close()


async def open_channel(own: socket.socket) -> Channel:
    """Open a channel on one side of a socket pair."""
    own.settimeout(0)
    return Channel(*await asyncio.open_connection(sock=own, limit=_LONGEST))
