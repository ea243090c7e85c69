"""The dashboard of `pergola up`, and a check of its response."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from rich.text import Text

from pergola.cli.up.story import UpError, within

if TYPE_CHECKING:
    from pergola.cli.up.story import Story
    from pergola.kube.client import Client

_SECONDS: Final = 60.0


@asynccontextmanager
async def dashboard(client: "Client", cluster: str, story: "Story") -> AsyncIterator[None]:
    """Serve the dashboard of a cluster while the block lasts; check it, and print its address."""
    from pergola.cli.dashboard.answers import answers
    from pergola.dashboard import Board, LocalDoor, Server, serve_dashboard
    from pergola.dashboard.access.local import LOOPBACK
    from pergola.runtime.process.listening import listen

    links = _Links(story)
    listener = listen(LOOPBACK, 0, "the dashboard")
    door = LocalDoor(client, listener.getsockname()[1], links.show)
    board = Board(client)
    server = Server(board=board, door=door, answers=answers(), cluster=cluster)
    async with serve_dashboard(server, listener):
        running = asyncio.create_task(board.unit().run())
        try:
            async with within(_SECONDS, "an answer of the dashboard"):
                await _check(links.newest, cluster)
            links.announce()
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def _check(link: str, cluster: str) -> None:
    """Sign in with a link, which uses it up, and request the cluster.

    Raises:
        UpError: The answer is different.
    """
    from aiohttp import ClientSession, CookieJar
    from yarl import URL

    async with ClientSession(cookie_jar=CookieJar(unsafe=True), raise_for_status=True) as session:
        async with session.get(link):
            pass
        async with session.get(URL(link).with_path("/api/cluster").with_query(None)) as answer:
            found = (await answer.json())["cluster"]
    if found != cluster:
        raise UpError(f"the dashboard shows the cluster {found} instead of {cluster}")


class _Links:
    """The links to the dashboard, each of which works once."""

    def __init__(self, story: "Story") -> None:
        self._story = story
        self._is_announced = False
        self.newest = ""

    def show(self, link: str) -> None:
        """Receive a link; print it if the previous one was used."""
        self.newest = link
        if self._is_announced:
            self._story.say("The dashboard was opened. For another browser:")
            self._print()

    def announce(self) -> None:
        """Print the newest link."""
        self._is_announced = True
        self._story.say("The dashboard answers. This address works once:")
        self._print()

    def _print(self) -> None:
        # At the margin, so that it fits on a line.
        self._story.console.print(Text(self.newest, style="bold"), soft_wrap=True)
