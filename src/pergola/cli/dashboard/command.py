"""`pergola dashboard`: a live page over a cluster."""

from typing import Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.text import say

Flag = Annotated[bool, Parameter(negative="")]


def dashboard(
    *,
    port: int = 0,
    open_browser: Annotated[Flag, Parameter(name="--open")] = False,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Serve a live page over a cluster: what needs attention, since when, and why.

    Everything is read with the permissions of the kubeconfig, and nothing is written. The page is
    served on loopback only; the printed link opens it in one browser and is then replaced by
    another one. Values of Secrets are never sent to the page. Runs until Ctrl-C.

    Parameters
    ----------
    port
        Port on 127.0.0.1; any free one by default.
    open_browser
        Open the page in the default browser.
    """
    from pergola.runtime.process.application import run

    run(lambda: _dashboard(port, cluster, open_browser=open_browser))


async def _dashboard(port: int, cluster: ClusterOptions, *, open_browser: bool) -> None:
    from pergola.cli.dashboard.answers import answers
    from pergola.dashboard import Board, LocalDoor, Server, serve_dashboard
    from pergola.dashboard.access.local import LOOPBACK
    from pergola.kube.client import Client
    from pergola.runtime.logging import configure
    from pergola.runtime.process.listening import listen

    configure("error", "text")
    config = cluster.config()
    async with Client.connect(config) as client:
        await client.get_raw("/version")  # report a wrong kubeconfig at once
        listener = listen(LOOPBACK, port, "the dashboard")
        links = _Links(config.context, open_browser=open_browser)
        door = LocalDoor(client, listener.getsockname()[1], links.show)
        board = Board(client)
        server = Server(board=board, door=door, answers=answers(), cluster=config.context)
        async with serve_dashboard(server, listener):
            await board.unit().run()


class _Links:
    """Prints links on the console; may open the first one at once."""

    def __init__(self, cluster: str, *, open_browser: bool) -> None:
        self._cluster = cluster
        self._opens = open_browser
        self._is_first = True

    def show(self, link: str) -> None:
        """Print a link that works once."""
        if self._is_first:
            text = f"The dashboard of {self._cluster} is at\n\n  {link}\n\nCtrl-C ends it."
        else:
            text = f"The page was opened. The link for another browser is\n\n  {link}"
        say(text, flush=True)
        if self._is_first and self._opens:
            import webbrowser

            webbrowser.open(link)
        self._is_first = False
