"""`pergola dashboard-server`: the page for the users of a cluster, over TLS."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions

if TYPE_CHECKING:
    from pergola.kube.kubeconfig import ClusterConfig
    from pergola.runtime.process.options import ProcessOptions

PORT = 8443


class DashboardServerError(Exception):
    """The command line is incomplete; the text says what is missing, with an example."""


class _Page(NamedTuple):
    """The address of the page, and how it is served."""

    bind: str
    port: int
    cert_dir: Path
    hosts: frozenset[str]
    name: str


def dashboard_server(
    *,
    host: Annotated[list[str] | None, Parameter(negative="")] = None,
    cert_dir: Path | None = None,
    name: str = "",
    port: int = PORT,
    bind: str = "",
    health_port: int = 8081,
    metrics_port: int = 8080,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Serve the page of the dashboard to the users of a cluster, over TLS only.

    People sign in with a bearer token, or an authenticating proxy sends one with each request. The
    API server is asked whose token it is, and what that user may list; nothing else is shown. What
    they open is read with their own token. Runs until SIGTERM or SIGINT.

    Parameters
    ----------
    host
        A name under which people reach the page, without a port, which is required; may be given
        several times. Requests to other names are refused.
    cert_dir
        The directory with tls.crt and tls.key, which is required. They are read again when they
        change.
    name
        The name of the cluster on the page; by default that of the context.
    port
        The port of the page.
    bind
        The address of all endpoints; all addresses by default.
    health_port
        The port of /healthz and /readyz.
    metrics_port
        The port of /metrics.
    """
    from pergola.runtime.logging import configure
    from pergola.runtime.process.application import run
    from pergola.runtime.process.options import Address, ProcessOptions

    if not host or cert_dir is None:
        raise DashboardServerError(
            "--host and --cert-dir are required, as in "
            "`pergola dashboard-server --host dashboard.example.org --cert-dir /etc/tls`"
        )
    configure("info", "json" if not sys.stderr.isatty() else "text")
    config = cluster.config()
    page = _Page(bind, port, cert_dir, frozenset(host), name or config.context)
    options = ProcessOptions(
        health=Address(bind, health_port, "--health-port"),
        metrics=Address(bind, metrics_port, "--metrics-port"),
    )
    run(lambda: _serve(config, page, options), "dashboard")


async def _serve(config: "ClusterConfig", page: _Page, options: "ProcessOptions") -> None:
    from pergola.admission.certificates import Certificates
    from pergola.admission.server import dials
    from pergola.cli.dashboard.answers import answers
    from pergola.dashboard import Board, ClusterDoor, Server, Visitors, serve_dashboard
    from pergola.dashboard.access.visitors import connecting
    from pergola.dashboard.server.tls import reloading
    from pergola.kube.client import Client
    from pergola.runtime import Unit
    from pergola.runtime.process.application import Application, Probes
    from pergola.runtime.process.listening import listen

    async with Client.connect(config) as client:
        application = Application(client, options)
        certificates = Certificates(page.cert_dir, application.metrics.certificates())
        visitors = Visitors(client, connecting(config))
        board = Board(client)
        door = ClusterDoor(visitors, page.hosts)
        server = Server(board=board, door=door, answers=answers(), cluster=page.name)
        listener = listen(page.bind, page.port, "the dashboard")
        bound: int = listener.getsockname()[1]
        # Not the first lists: the page itself reports what it cannot read.
        probes = Probes(readyz={"page": lambda: dials(page.bind or "localhost", bound)})
        parts = [board.unit(), Unit("certificates", tasks=[certificates.watch])]
        try:
            async with serve_dashboard(server, listener, reloading(certificates)):
                await application.serve(leading=parts, probes=probes)
        finally:
            await visitors.close()
