"""Debugging endpoints: the tasks of the running process, and a profile of it.

The paths match those of Go processes where Go has an equivalent; responses are plain text.
"""

import asyncio
import cProfile
import io
import pstats
from typing import Final

from aiohttp import web

DEFAULT_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 300.0
_FUNCTIONS: Final = 80


def profiling_routes() -> list[web.RouteDef]:
    """Return routes for `/debug/pprof/`, `/debug/pprof/profile?seconds=<n>` and `/debug/tasks`."""
    profiler = _Profiler()
    return [
        web.get("/debug/pprof/", _index),
        web.get("/debug/pprof/profile", profiler.profile),
        web.get("/debug/tasks", _tasks),
    ]


async def _index(_request: web.Request) -> web.Response:
    return web.Response(
        text="/debug/pprof/profile?seconds=30  where the event loop spends its time\n"
        "/debug/tasks  every asyncio task and where it waits\n"
    )


async def _tasks(_request: web.Request) -> web.Response:
    """Show names and stacks of all tasks, without values of variables."""
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"{task.get_name()}\n")
        task.print_stack(file=text)
        text.write("\n")
    return web.Response(text=text.getvalue())


class _Profiler:
    """Profiles the thread of the event loop, one profile at a time because it has one hook."""

    def __init__(self) -> None:
        self._busy = False

    async def profile(self, request: web.Request) -> web.Response:
        try:
            seconds = float(request.query.get("seconds", DEFAULT_SECONDS))
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= LONGEST_SECONDS:
            return _refused(400, f"seconds must be a number from 0 to {LONGEST_SECONDS:g}")
        if self._busy:
            return _refused(409, "another profile is being taken; try again later")
        self._busy = True
        try:
            return web.Response(text=await _profile(seconds))
        finally:
            self._busy = False


async def _profile(seconds: float) -> str:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        await asyncio.sleep(seconds)
    finally:
        profiler.disable()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(_FUNCTIONS)
    return text.getvalue()


def _refused(status: int, reason: str) -> web.Response:
    return web.Response(text=f"{reason}\n", status=status)
