"""The way from a node's processes, and from the API server, to Services and pods.

A proxy that understands CONNECT, on a Unix socket and on loopback. Clients keep the names that they
connect to, so that TLS is verified end to end with the certificates of the cluster.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.yaml import dump
from pergola.sandbox.directory import write
from pergola.sandbox.process_node.routes import Endpoint, Resolve
from pergola.sandbox.pumping import Connections, Stream, join

_HEADER_SECONDS: Final = 10.0
_ACCEPTED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REFUSED: Final = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


class Tunnel:
    """A proxy to the endpoints that a resolver finds."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._connections = Connections()

    @contextlib.asynccontextmanager
    async def serving(self, socket: Path) -> AsyncGenerator[str]:
        """Serve on a Unix socket and a loopback port until the block ends; yield the port's URL."""
        accept = self._connections.served_by(self._serve)
        unix = await asyncio.start_unix_server(accept, str(socket))
        tcp = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{tcp.sockets[0].getsockname()[1]}"
        finally:
            unix.close()
            tcp.close()
            await self._connections.end()

    async def _serve(self, client: Stream) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, TimeoutError, ValueError):
                await self._connect(client)
        finally:
            client.writer.close()

    async def _connect(self, client: Stream) -> None:
        async with asyncio.timeout(_HEADER_SECONDS):
            request = await client.reader.readuntil(b"\r\n\r\n")
        target = self._target(request)
        try:
            if target is None:
                raise ConnectionRefusedError
            server = Stream(*await asyncio.open_connection(*target))
        except OSError:
            client.writer.write(_REFUSED)
            await client.writer.drain()
            return
        client.writer.write(_ACCEPTED)
        await join(client, server)

    def _target(self, request: bytes) -> Endpoint | None:
        method, _, rest = request.partition(b" ")
        host, _, port = rest.partition(b" ")[0].decode("ascii").rpartition(":")
        return self._resolve(host.strip("[]"), int(port)) if method == b"CONNECT" else None


def write_egress(file: Path, socket: Path, *connections: str) -> Path:
    """Write the file that sends an API server's connections to a tunnel.

    Args:
        file: for `--egress-selector-config-file`.
        connections: `etcd`; `cluster`, to webhooks and aggregated APIs that are Services; and
            `controlplane`, to webhooks by URL.
    """
    transport: JsonObject = {"uds": {"udsName": str(socket)}}
    connection: JsonObject = {"proxyProtocol": "HTTPConnect", "transport": transport}
    selections: list[JsonObject] = [
        {"name": name, "connection": connection} for name in connections
    ]
    configuration: JsonObject = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": selections,
    }
    return write(file, dump(configuration))
