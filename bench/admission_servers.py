"""The servers that `bench/admission.py` measures; this module runs one of them as a process.

    python -m bench.admission_servers NAME FOLDER [PORT]

The folder has the certificate; unless PORT is given for several processes to share, the chosen
port is written to `port` in the folder. At `/nothing` no review is read, to measure only the
server. When a server is terminated, it writes its `Notes` to `PID.json`.
"""

import gc
import os
import sys
import time
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
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
from pergola.resource_manager.webhooks.facts.taints import Taint
from pergola.runtime.logging import configure
from pergola.runtime.memory import allocate_large_blocks_apart
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import event_loop
from pergola.runtime.process.signals import ended_by_signals

NOTHING: Final = "nothing"
CONNECTIONS: Final = 16
BODY_LIMIT: Final = 7 * 1024 * 1024
TAINTS: Final = [
    Taint("node.example/accelerator", "gpu", "NoSchedule"),
    Taint("node.example/dedicated", "", "NoExecute"),
    Taint("node.example/zone", "a", "NoSchedule"),
]
POD_NODE_SELECTOR: Final = {"worker.gardener.cloud/system-components": "true"}
POD_TOLERATIONS: Final = [Toleration(key="system", operator="Exists")]


def known_taints() -> Sequence[Taint]:
    """Return the result of a cache of nodes."""
    return TAINTS


def known_mount(_: Key) -> bool:
    """Return the result of a cache of ServiceAccounts."""
    return True


async def system_taints() -> Sequence[Taint]:
    """Return the result of a cache of nodes."""
    return TAINTS


async def mounts_token(_: Key) -> bool:
    """Return the result of a cache of ServiceAccounts."""
    return True


class Notes:
    """The server's CPU time at each response, and the pauses of the garbage collector.

    A round is one response on each connection. Its CPU time is the time for which an API server
    that keeps all connections busy would wait for a dedicated core.
    """

    def __init__(self) -> None:
        self._answers = array("d")
        self._pauses: list[float] = []
        self._began = 0.0
        gc.callbacks.append(self._collect)

    def clocked(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint that records the CPU time of its responses."""
        return _Clocked(endpoint, self._answers)

    def write(self, file: Path, connections: int) -> None:
        """Write the rounds' milliseconds and the pauses."""
        times = self._answers
        rounds = sorted(
            (times[n + connections] - times[n]) * 1000 for n in range(len(times) - connections)
        )
        report = {
            "answers": len(times),
            "p50": rounds[len(rounds) // 2] if rounds else 0.0,
            "p99": rounds[int(len(rounds) * 0.99)] if rounds else 0.0,
            "pauses": len(self._pauses),
            "longest_pause": max(self._pauses, default=0.0) * 1000,
        }
        file.write_bytes(orjson.dumps(report))

    def _collect(self, phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._pauses.append(time.thread_time() - self._began)


class _Clocked:
    def __init__(self, endpoint: Endpoint, answers: "array[float]") -> None:
        self._endpoint = endpoint
        self._answers = answers
        self.too_large = endpoint.too_large

    def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes | Awaitable[bytes]:
        answer = self._endpoint(content_type, body, peer)
        if isinstance(answer, bytes):
            self._answers.append(time.thread_time())
            return answer
        return self._wait(answer)

    async def _wait(self, answer: Awaitable[bytes]) -> bytes:
        body = await answer
        self._answers.append(time.thread_time())
        return body


class Nothing:
    """An endpoint that does not decode the request."""

    def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes:
        del content_type, body, peer
        return b"{}"

    def too_large(self, limit: str) -> bytes:
        return b"{}"


def endpoints() -> dict[str, Endpoint]:
    """Return all pod webhooks of a cluster with worker nodes."""
    handlers: dict[str, Handler] = {
        projected_token_mount.PATH: projected_token_mount.ProjectedTokenMount(
            mounts_token, 43200, known=known_mount
        ),
        seccomp_profile.PATH: seccomp_profile.review,
        kubernetes_service_host.PATH: kubernetes_service_host.KubernetesServiceHost(
            "api.example.org"
        ),
        system_components_config.PATH: system_components_config.SystemComponentsConfig(
            system_taints,
            POD_NODE_SELECTOR,
            POD_TOLERATIONS,
            known=known_taints,
        ),
        pod_topology_spread_constraints.PATH: pod_topology_spread_constraints.review,
    }
    metrics = Metrics()
    found: dict[str, Endpoint] = {f"/{NOTHING}": Nothing()}
    for path, handler in handlers.items():
        found[path] = Reviewer(path, handler, metrics.webhook(path))
    return found


Server = Callable[[dict[str, Endpoint], Certificates, int], AbstractAsyncContextManager[int]]


def pergola(
    served: dict[str, Endpoint], certificates: Certificates, port: int
) -> AbstractAsyncContextManager[int]:
    """Return the server of the product."""
    return serve("127.0.0.1", port, served, certificates, shared=True)


async def _answer(request: web.BaseRequest, endpoint: Endpoint) -> web.Response:
    found = endpoint(request.headers["Content-Type"], await request.read())
    body = await found if isinstance(found, Awaitable) else found
    return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def aiohttp_application(
    served: dict[str, Endpoint], certificates: Certificates, port: int
) -> AsyncGenerator[int]:
    """Serve with an aiohttp application and its routes."""

    async def handle(request: web.Request) -> web.Response:
        return await _answer(request, served[request.path])

    app = web.Application(client_max_size=BODY_LIMIT)
    app.add_routes([web.post(path, handle) for path in served])
    runner = web.AppRunner(app, access_log=None)
    async with _run(runner, certificates, port) as bound:
        yield bound


@asynccontextmanager
async def aiohttp_server(
    served: dict[str, Endpoint], certificates: Certificates, port: int
) -> AsyncGenerator[int]:
    """Serve with aiohttp, without an application and routes."""

    async def handle(request: web.BaseRequest) -> web.Response:
        return await _answer(request, served[request.path])

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    async with _run(runner, certificates, port) as bound:
        yield bound


@asynccontextmanager
async def _run(
    runner: web.AppRunner | web.ServerRunner, certificates: Certificates, port: int
) -> AsyncGenerator[int]:
    allocate_large_blocks_apart()  # as the product's server, which returns its memory after a flood
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=certificates.context)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


SERVERS: Final[dict[str, Server]] = {
    "pergola": pergola,
    "aiohttp web.Server": aiohttp_server,
    "aiohttp web.Application": aiohttp_application,
}


async def run(name: str, folder: Path, port: int = 0) -> None:
    """Serve until the process is stopped."""
    configure("error")
    certificates, notes = Certificates(folder, Metrics().certificates()), Notes()
    served = {path: notes.clocked(endpoint) for path, endpoint in endpoints().items()}
    with ended_by_signals() as ended:
        async with SERVERS[name](served, certificates, port) as bound:
            partial = folder / "port.new"
            partial.write_text(str(bound))
            partial.rename(folder / (str(os.getpid()) if port else "port"))
            await ended.wait()
    notes.write(folder / f"{os.getpid()}.json", CONNECTIONS)


if __name__ == "__main__":
    name, folder, port = sys.argv[1], Path(sys.argv[2]), int("".join(sys.argv[3:]) or 0)
    event_loop.run(lambda: run(name, folder, port))
