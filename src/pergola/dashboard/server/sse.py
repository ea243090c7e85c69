"""The format of server-sent events: a message with a name, an id and JSON."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final

import orjson
from aiohttp import web

_SLOW_SECONDS: Final = 30.0
"""How long a page may take to read a message, which is in memory until then."""
_PIECE: Final = 64 * 1024
"""Bytes copied for a page that reads slowly; it shares the rest of a message with other pages."""


def message(name: str, data: Any, *, id: str = "") -> bytes:  # noqa: A002 - the field's name
    """Return a message; JSON contains no line breaks, so one line of data suffices."""
    head = f"event: {name}\n" + (f"id: {id}\n" if id else "")
    return head.encode() + b"data: " + orjson.dumps(data) + b"\n\n"


async def send_events(request: web.Request, messages: AsyncGenerator[bytes]) -> web.StreamResponse:
    """Answer with messages until there are no more, or the page disconnects."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    async with aclosing(messages):
        with suppress(ConnectionError, TimeoutError):
            async for each in messages:
                async with asyncio.timeout(_SLOW_SECONDS):
                    await _write(response, each)
            return response
    if request.transport is not None:
        request.transport.abort()  # what is not read yet is dropped
    return response


async def _write(response: web.StreamResponse, content: bytes) -> None:
    whole = memoryview(content)
    for start in range(0, len(whole), _PIECE):
        await response.write(whole[start : start + _PIECE])
