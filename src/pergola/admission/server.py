"""Serving webhooks over TLS (spec 12 §1.1): start, readiness, and a graceful end."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from pergola.admission.certificates import Certificates
from pergola.admission.http import Connection, Endpoint, Limits, Shared
from pergola.runtime.logging import get_logger
from pergola.runtime.process.listening import listen

log = get_logger("admission-server")

HANDSHAKE_SECONDS: Final = 10.0
GRACE_SECONDS: Final = 4.0
_SWEEP_SECONDS: Final = 1.0
_BACKLOG: Final = 512


@asynccontextmanager
async def serve(
    bind: str,
    port: int,
    endpoints: Mapping[str, Endpoint],
    certificates: Certificates,
    *,
    limits: Limits | None = None,
    grace: float = GRACE_SECONDS,
) -> AsyncGenerator[int]:
    """Serves the endpoints; each other path is not found.

    At the end nobody can connect any more, and what is being received or answered has `grace`
    seconds.

    Args:
        bind: the address to listen on; empty for all.
        port: the port to listen on; 0 for any that is free.

    Yields:
        The port.

    Raises:
        ListenError: the port is taken, or not allowed.
    """
    loop = asyncio.get_running_loop()
    shared = Shared(dict(endpoints), limits or Limits(), loop.time)
    listener = listen(bind, port, "webhooks")
    server = await loop.create_server(
        lambda: Connection(shared),
        sock=listener,
        ssl=certificates.context,
        backlog=_BACKLOG,
        ssl_handshake_timeout=HANDSHAKE_SECONDS,
    )
    bound: int = listener.getsockname()[1]
    sweeping = asyncio.create_task(_sweep(shared))
    watching = asyncio.create_task(certificates.watch())
    log.info("webhooks are served", port=bound, paths=len(shared.endpoints))
    try:
        yield bound
    finally:
        server.close()
        await shared.drain(grace)
        for task in (sweeping, watching):
            task.cancel()
        await asyncio.gather(sweeping, watching, return_exceptions=True)


async def dials(host: str, port: int, seconds: float = 10.0) -> str | None:
    """Why a TLS handshake with a server does not succeed; None if it does.

    The certificate is not verified: this asks whether somebody answers, not who.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, ssl.SSLError, TimeoutError) as error:
        return f"cannot connect to {host}:{port}: {str(error) or type(error).__name__}"
    writer.close()
    with suppress(OSError, ssl.SSLError):
        await writer.wait_closed()
    return None


async def _sweep(shared: Shared) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        shared.sweep()
