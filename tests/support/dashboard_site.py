"""The dashboard of a test cluster, and one person with a browser."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp
import orjson

from pergola.api.objects import JsonObject
from pergola.dashboard import Answers, Board, LocalDoor, Server, serve_dashboard
from pergola.dashboard.access.local import LOOPBACK
from pergola.kube.client import Client
from pergola.runtime.process.listening import listen
from pergola.runtime.task_group import TaskGroup
from pergola.testing.waiting import PATIENCE


class Message(NamedTuple):
    """A server-sent event."""

    name: str
    id: str
    data: Any


@dataclass
class DashboardSite:
    """A dashboard, and a browser's session.

    Attributes:
        links: The links that were printed, the last one being valid.
        session: Its cookies are kept.
    """

    url: str
    session: aiohttp.ClientSession
    board: Board
    links: list[str] = field(default_factory=list)

    async def sign_in(self) -> None:
        """Open the last link, so that later requests have a session."""
        async with self.session.get(self.links[-1]) as answer:
            assert answer.status == 200, await answer.text()

    async def get(self, path: str, **query: str) -> tuple[int, str]:
        """Return the status and the text of an answer."""
        async with self.session.get(f"{self.url}{path}", params=query) as answer:
            return answer.status, await answer.text()

    async def json(self, path: str, **query: str) -> Any:
        """Return the JSON of an answer; fail unless the request succeeded."""
        status, text = await self.get(path, **query)
        assert status == 200, text
        return orjson.loads(text)

    @asynccontextmanager
    async def stream(self, last: str = "") -> AsyncGenerator[AsyncIterator[Message]]:
        """Yield the messages of the stream, from a position on if one is given."""
        headers = {"Last-Event-ID": last} if last else {}
        limit = aiohttp.ClientTimeout(total=None)
        request = self.session.get(f"{self.url}/api/stream", headers=headers, timeout=limit)
        async with asyncio.timeout(PATIENCE), request as answer:
            assert answer.status == 200
            yield _messages(answer.content)

    async def item(self, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait for the first entry of a new stream that is as expected."""
        async with self.stream() as messages:
            return await item(messages, holds)


async def item(messages: AsyncIterator[Message], holds: Callable[[JsonObject], bool]) -> JsonObject:
    """Wait for the next entry that is as expected."""
    async for message in messages:
        found = [each for each in (message.data.get("items") or ()) if holds(each)]
        if found:
            first: JsonObject = found[0]
            return first
    raise AssertionError("the stream ended")


@asynccontextmanager
async def dashboard_site(client: Client, answers: Answers) -> AsyncGenerator[DashboardSite]:
    """Yield a dashboard over a cluster, for a person who has not signed in yet."""
    listener = listen(LOOPBACK, 0, "the dashboard")
    port: int = listener.getsockname()[1]
    board = Board(client)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        site = DashboardSite(f"http://{LOOPBACK}:{port}", session, board)
        door = LocalDoor(client, port, site.links.append)
        server = Server(board=board, door=door, answers=answers, cluster="test")
        async with TaskGroup() as group, serve_dashboard(server, listener):
            watching = group.create_task(board.unit().run())
            try:
                yield site
            finally:
                watching.cancel()


async def _messages(content: aiohttp.StreamReader) -> AsyncIterator[Message]:
    """Yield messages; a line of them may be longer than the reader's limit."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n\n")
        for text in whole:
            fields = dict(line.split(": ", 1) for line in text.decode().split("\n"))
            yield Message(fields["event"], fields.get("id", ""), orjson.loads(fields["data"]))
