"""Addresses that a component serves."""

from typing import Annotated

from msgspec import Meta

from pergola.api.schema.declare import Value

Port = Annotated[int, Meta(ge=0, le=65535)]


class Address(Value):
    """An address to serve; the component's own type has the default port."""

    bind_address: str = ""
    """The address to listen on; all addresses if empty."""
    port: Port = 0
    """The port to listen on; any free port if 0."""
