"""A proxy in front of an API server, on loopback."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import aiohttp
from aiohttp import web

from pergola.kube.kubeconfig import ClusterConfig, ssl_context

Handler: TypeAlias = Callable[[aiohttp.ClientSession, web.Request], Awaitable[web.StreamResponse]]

_HOST: Final = "127.0.0.1"
_LARGEST: Final = 16 * 1024 * 1024
_PASSED: Final = ("Accept", "Content-Type")


@asynccontextmanager
async def serving(
    config: ClusterConfig, handler: Handler, *, auto_decompress: bool = True
) -> AsyncGenerator[str]:
    """Yield the URL of a proxy whose requests `handler` answers.

    Args:
        auto_decompress: whether the session decompresses the answers of the API server.
    """
    connector = aiohttp.TCPConnector(ssl=ssl_context(config), limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=auto_decompress
    ) as session:

        async def handle(request: web.Request) -> web.StreamResponse:
            return await handler(session, request)

        app = web.Application(client_max_size=_LARGEST)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, _HOST, 0)
            await site.start()
            yield f"http://{_HOST}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def headers_for(config: ClusterConfig, request: web.Request) -> dict[str, str]:
    """Return the headers with which a request is passed on: the proxy has its own credentials."""
    headers = {name: value for name, value in request.headers.items() if name in _PASSED}
    return {**headers, **await config.credentials.headers()}


def url_for(config: ClusterConfig, request: web.Request) -> str:
    """Return the URL of a request at the API server."""
    return config.server.rstrip("/") + request.raw_path
