"""The HTTP endpoints of a process: liveness, readiness and metrics (spec 10 §13.3).

Each request runs all checks concurrently, none for longer than a kubelet waits.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, cast

from aiohttp import web

from pergola.runtime.metrics import CONTENT_TYPE, Metrics
from pergola.runtime.process.listening import listen
from pergola.runtime.process.options import Address
from pergola.runtime.process.profiling import profiling_routes
from pergola.runtime.task_group import gathered

CHECK_SECONDS: Final = 4.0
CONNECTIONS: Final = 100
"""The maximum number of open connections of a port; the oldest makes room for the next."""
_SHUTDOWN_SECONDS: Final = 1.0

Check = Callable[[], Awaitable[str | None] | str | None]
"""A check, which returns None or a problem; raising counts as a problem, too."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A check that an endpoint shows, but that never makes it fail."""

    check: Check


@asynccontextmanager
async def serve_probes(
    at: Address,
    healthz: Mapping[str, Check | Notice],
    readyz: Mapping[str, Check | Notice],
) -> AsyncGenerator[int]:
    """Serve `/healthz` and `/readyz`, and each check under its name below them.

    `/healthz` has a check `ping` of its own, which never fails.

    Args:
        healthz: the process is restarted if one of them fails.
        readyz: the process gets no traffic if one of them fails.

    Yields:
        The port.

    Raises:
        ListenError: the port is taken, or not allowed.
    """
    app = web.Application()
    for endpoint in (
        _Endpoint("healthz", {"ping": _ping, **healthz}),
        _Endpoint("readyz", readyz),
    ):
        app.router.add_get(f"/{endpoint.name}", endpoint.all)
        app.router.add_get(f"/{endpoint.name}/", endpoint.all)
        app.router.add_get(f"/{endpoint.name}/{{check}}", endpoint.one)
    async with _serve(app, at, "health probes") as bound:
        yield bound


@asynccontextmanager
async def serve_metrics(
    at: Address, metrics: Metrics, *, profiling: bool = False
) -> AsyncGenerator[int]:
    """Serve `/metrics` and, with `profiling`, tasks and profiles under `/debug`.

    Args:
        metrics: the metrics to serve.
        profiling: whether callers may see stacks and profile the process.

    Yields:
        The port.

    Raises:
        ListenError: the port is taken, or not allowed.
    """

    async def render(_request: web.Request) -> web.Response:
        body = await metrics.render_all()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", render)
    if profiling:
        app.add_routes(profiling_routes())
    async with _serve(app, at, "metrics") as bound:
        yield bound


class _Endpoint:
    """A set of checks under one path."""

    def __init__(self, name: str, checks: Mapping[str, Check | Notice]) -> None:
        self.name = name
        self._checks = {
            name: check.check if isinstance(check, Notice) else check
            for name, check in checks.items()
        }
        self._notices = {name for name, check in checks.items() if isinstance(check, Notice)}

    async def all(self, request: web.Request) -> web.Response:
        """Run all checks: `?verbose` lists them also on success, `?exclude=<check>` skips one."""
        excluded = set(request.query.getall("exclude", []))
        names = [name for name in self._checks if name not in excluded]
        results = await gathered(_run(self._checks[name]) for name in names)
        problems = dict(zip(names, results, strict=True))
        lines = [self._line(name, problem) for name, problem in problems.items()]
        if any(problem for name, problem in problems.items() if name not in self._notices):
            return _answer([*lines, f"{self.name} check failed"], status=500)
        return _answer([*lines, f"{self.name} check passed"] if "verbose" in request.query else [])

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["check"]
        if name not in self._checks:
            return _answer([f"{self.name} has no check {name!r}"], status=404)
        problem = await _run(self._checks[name])
        return _answer([f"{name} failed: {problem}"], status=500) if problem else _answer([])

    def _line(self, name: str, problem: str | None) -> str:
        if not problem:
            return f"[+]{name} ok"
        return f"[{'!' if name in self._notices else '-'}]{name} failed: {problem}"


async def _run(check: Check) -> str | None:
    limit = asyncio.timeout(CHECK_SECONDS)
    try:
        async with limit:
            result = check()
            return await result if inspect.isawaitable(result) else result
    except Exception as error:  # whatever a check raises is its result
        if limit.expired():
            return f"no result within {CHECK_SECONDS:g} seconds"
        return str(error) or type(error).__name__


def _ping() -> None:
    """Succeed: that the process answers is the proof."""


def _answer(lines: list[str], status: int = 200) -> web.Response:
    text = "".join(f"{line}\n" for line in lines) or "ok"
    return web.Response(text=text, status=status, headers={"X-Content-Type-Options": "nosniff"})


@asynccontextmanager
async def _serve(app: web.Application, at: Address, what: str) -> AsyncGenerator[int]:
    listener = listen(at.host, at.port, f"{what} ({at.option})" if at.option else what)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    handlers = cast("web.Server", runner.server)  # it exists after the setup
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(_limited(handlers), sock=listener)
        try:
            yield listener.getsockname()[1]
        finally:
            server.close()
    finally:
        await runner.cleanup()
        listener.close()


def _limited(server: web.Server) -> Callable[[], asyncio.Protocol]:
    """Return a server whose connections cannot use up the descriptors of the process.

    Callers are not authenticated, and may keep connections open without a request.
    """

    def protocol() -> asyncio.Protocol:
        connections = [each for each in server.connections if each.transport is not None]
        for oldest in connections[: max(0, len(connections) - CONNECTIONS + 1)]:
            oldest.force_close()
        return server()

    return protocol
