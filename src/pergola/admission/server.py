"""Serving webhooks over TLS (spec 12 §1.1): startup, readiness, and graceful shutdown."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from pergola.admission.accepting import accept
from pergola.admission.certificates import Certificates
from pergola.admission.connections import Connections, Limits
from pergola.admission.http import Connection, Endpoint, Shared
from pergola.runtime.logging import get_logger
from pergola.runtime.memory import allocate_large_blocks_apart
from pergola.runtime.process.listening import listen
from pergola.runtime.task_group import TaskGroup

log = get_logger("admission-server")

GRACE_SECONDS: Final = 4.0
_SWEEP_SECONDS: Final = 1.0


@asynccontextmanager
async def serve(
    bind: str,
    port: int,
    endpoints: Mapping[str, Endpoint],
    certificates: Certificates,
    *,
    limits: Limits | None = None,
    grace: float = GRACE_SECONDS,
    shared: bool = False,
) -> AsyncGenerator[int]:
    """Serve the endpoints; answer 404 at every other path.

    At the end, no more connections are accepted, and requests in flight have `grace` seconds.

    Args:
        bind: the address to listen on; empty for all.
        port: the port to listen on; 0 for any free one.
        shared: whether other processes of the same user listen there, too.

    Yields:
        The port.

    Raises:
        ListenError: The port is in use, or not permitted.
    """
    allocate_large_blocks_apart()
    listener = listen(bind, port, "webhooks", shared=shared)
    listener.settimeout(0)
    bound: int = listener.getsockname()[1]
    failure: Exception | None = None
    async with TaskGroup() as group:
        connections = Connections(limits or Limits(), asyncio.get_running_loop().time)
        state = Shared(dict(endpoints), connections, group.create_task)
        tasks = [
            group.create_task(
                accept(
                    listener,
                    connections,
                    make=partial(Connection, state),
                    context=lambda: certificates.context,
                    start=group.create_task,
                )
            ),
            group.create_task(_sweep(connections)),
            group.create_task(certificates.watch()),
        ]
        log.info("webhooks are served", port=bound, paths=len(state.endpoints))
        try:
            yield bound
        except Exception as error:  # raised below, because a task group would wrap it
            failure = error
        finally:
            tasks[0].cancel()
            listener.close()
            await state.drain(grace)
            for task in tasks:
                task.cancel()
    if failure is not None:
        raise failure


async def dials(host: str, port: int, seconds: float = 10.0) -> str | None:
    """Return why a TLS handshake with a server fails, or None if it succeeds.

    The certificate is not verified: this checks that a server answers, not which one.
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


async def _sweep(connections: Connections) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        connections.sweep()
