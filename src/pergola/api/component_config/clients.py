"""Connections of a component to clusters."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from pergola.api.component_config.zeros import ZERO_IS_UNSET
from pergola.api.schema.declare import Value
from pergola.api.schema.validate import Finding, child


class ClientConnection(Value):
    """A connection to a cluster."""

    kubeconfig: str = ""
    """The path of a kubeconfig; empty for the credentials inside the cluster."""
    qps: Annotated[float | None, ZERO_IS_UNSET] = None
    """The maximum number of requests per second; unlimited if absent."""
    burst: Annotated[Annotated[int, Meta(ge=0)] | None, ZERO_IS_UNSET] = None
    """The maximum number of requests at once."""
    content_type: str = ""
    """The format of request bodies; always JSON."""
    accept_content_types: str = ""
    """The formats of responses; always JSON."""


def check_connection(connection: ClientConnection, path: str) -> Iterator[Finding]:
    """Yield findings about a connection beyond its schema."""
    if connection.qps is not None and connection.qps < 0:
        yield Finding(child(path, "qps"), "must not be negative")
