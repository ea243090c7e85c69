"""The servers that `bench/admission.py` measures; one of them, as a process of its own.

    python -m bench.admission_servers NAME FOLDER

The folder has the certificate; the port is written to `port` in it. At `/nothing` no review is
read, and what is measured is the server alone.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import uvloop
from aiohttp import web

from pergola.admission.certificates import Certificates
from pergola.admission.http import Endpoint
from pergola.admission.protocol import Reviewer
from pergola.admission.review import Handler
from pergola.admission.server import serve
from pergola.api.core_v1 import Toleration
from pergola.api.objects import Key
from pergola.resource_manager.webhooks import (
    kubernetes_service_host,
    pod_topology_spread_constraints,
    projected_token_mount,
    seccomp_profile,
    system_components_config,
)
from pergola.resource_manager.webhooks.system_components_config import Taint
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics

NOTHING: Final = "nothing"
BODY_LIMIT: Final = 7 * 1024 * 1024
TAINTS: Final = [
    Taint("node.example/accelerator", "gpu", "NoSchedule"),
    Taint("node.example/dedicated", "", "NoExecute"),
    Taint("node.example/zone", "a", "NoSchedule"),
]


async def system_taints() -> Sequence[Taint]:
    """Return the answer of a cache of nodes."""
    return TAINTS


async def mounts_token(_: Key) -> bool:
    """Return the answer of a cache of ServiceAccounts."""
    return True


class Nothing:
    """An endpoint that does not decode the request."""

    def __call__(self, content_type: str, body: bytes) -> bytes:
        del content_type, body
        return b"{}"

    def too_large(self, limit: str) -> bytes:
        return b"{}"


def endpoints() -> dict[str, Endpoint]:
    """Return all pod webhooks of a cluster with worker nodes."""
    handlers: dict[str, Handler] = {
        projected_token_mount.PATH: projected_token_mount.ProjectedTokenMount(mounts_token, 43200),
        seccomp_profile.PATH: seccomp_profile.review,
        kubernetes_service_host.PATH: kubernetes_service_host.KubernetesServiceHost(
            "api.example.org"
        ),
        system_components_config.PATH: system_components_config.SystemComponentsConfig(
            system_taints,
            {"worker.gardener.cloud/system-components": "true"},
            [Toleration(key="system", operator="Exists")],
        ),
        pod_topology_spread_constraints.PATH: pod_topology_spread_constraints.review,
    }
    metrics = Metrics()
    found: dict[str, Endpoint] = {f"/{NOTHING}": Nothing()}
    for path, handler in handlers.items():
        found[path] = Reviewer(path, handler, metrics.webhook(path))
    return found


Server = Callable[[dict[str, Endpoint], Certificates], AbstractAsyncContextManager[int]]


def pergola(
    served: dict[str, Endpoint], certificates: Certificates
) -> AbstractAsyncContextManager[int]:
    """Return the server of the product."""
    return serve("127.0.0.1", 0, served, certificates)


async def _answer(request: web.BaseRequest, endpoint: Endpoint) -> web.Response:
    found = endpoint(request.headers["Content-Type"], await request.read())
    body = await found if isinstance(found, Awaitable) else found
    return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def aiohttp_application(
    served: dict[str, Endpoint], certificates: Certificates
) -> AsyncGenerator[int]:
    """Serve with aiohttp as usual: with routes."""

    async def handle(request: web.Request) -> web.Response:
        return await _answer(request, served[request.path])

    app = web.Application(client_max_size=BODY_LIMIT)
    app.add_routes([web.post(path, handle) for path in served])
    runner = web.AppRunner(app, access_log=None)
    async with _run(runner, certificates) as port:
        yield port


@asynccontextmanager
async def aiohttp_server(
    served: dict[str, Endpoint], certificates: Certificates
) -> AsyncGenerator[int]:
    """Serve with aiohttp without application and routes."""

    async def handle(request: web.BaseRequest) -> web.Response:
        return await _answer(request, served[request.path])

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    async with _run(runner, certificates) as port:
        yield port


@asynccontextmanager
async def _run(
    runner: web.AppRunner | web.ServerRunner, certificates: Certificates
) -> AsyncGenerator[int]:
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.context)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


SERVERS: Final[dict[str, Server]] = {
    "pergola": pergola,
    "aiohttp web.Server": aiohttp_server,
    "aiohttp web.Application": aiohttp_application,
}


async def run(name: str, folder: Path) -> None:
    """Serve until the process is stopped."""
    configure("error")
    certificates = Certificates(folder, Metrics().certificates())
    async with SERVERS[name](endpoints(), certificates) as port:
        partial = folder / "port.new"
        partial.write_text(str(port))
        partial.rename(folder / "port")
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(run(sys.argv[1], Path(sys.argv[2])))
