"""The process: `python -m pergola.sandbox.istiod discovery`, with the arguments of the original."""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from pergola.kube.client import Client
from pergola.kube.kubeconfig import in_cluster
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import configure
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.listening import listen
from pergola.runtime.process.signals import work_until_signalled
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox.istiod.discovery import Discovery
from pergola.sandbox.istiod.trust import RootCertificates, apply_authority, server_context

_DISCOVERY_PORT: Final = 15012
_READY_PORT: Final = 8080
_DEFAULT_NAMESPACE: Final = "istio-system"


async def serve() -> None:
    """Configure gateways until cancelled."""
    namespace = os.environ.get("POD_NAMESPACE", _DEFAULT_NAMESPACE)
    async with Client.connect(in_cluster()) as client:
        authority = await apply_authority(client, namespace, datetime.now(UTC))
        discovery = Discovery(client)
        feed = Unit("discovery", caches=discovery.caches)
        tls = server_context(authority, namespace, datetime.now(UTC))
        async with TaskGroup() as group:
            group.create_task(feed.run())
            group.create_task(RootCertificates(client, authority).unit().run())
            await feed.synced()
            async with (
                _listening(discovery.routes(), _DISCOVERY_PORT, tls),
                _listening([web.get("/ready", _ready)], _READY_PORT),
            ):
                await asyncio.Event().wait()


@asynccontextmanager
async def _listening(
    routes: Iterable[web.RouteDef], port: int, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[None]:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listen("", port, "gateways"), ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()


async def _ready(_request: web.Request) -> web.Response:
    return web.Response(text="ready\n")


async def _main() -> None:
    configure("info", "json")
    await work_until_signalled(serve())


if __name__ == "__main__":
    run(_main)
