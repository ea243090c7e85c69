"""How a component reaches a cluster."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from pergola.api.schema.declare import Value
from pergola.api.schema.validate import Finding, child


class ClientConnection(Value):
    """How a cluster is reached."""

    kubeconfig: str = ""
    """The path of a kubeconfig; empty for the credentials inside the cluster."""
    qps: float | None = None
    """Requests per second at most; absent for no limit of our own."""
    burst: Annotated[int, Meta(ge=0)] | None = None
    """Requests at once at most."""
    content_type: str = ""
    """The format of request bodies; always JSON."""
    accept_content_types: str = ""
    """The formats of responses; always JSON."""


def check_connection(connection: ClientConnection, path: str) -> Iterator[Finding]:
    """Yield what is wrong with a connection beyond its schema."""
    if connection.qps is not None and connection.qps < 0:
        yield Finding(child(path, "qps"), "must not be negative")
