"""Operators that are killed with SIGKILL at the boundaries of their tasks, one after the other."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from pergola.api.objects import JsonObject
from pergola.sandbox.simulated import Site
from tests.support.garden_world import configuration, install_operator

_MOST = 60
"""Lines of the log that a failure shows."""


class OperatorLives:
    """Operators on one site: separate processes, of which one lives at a time.

    Attributes:
        boundaries: the tasks, as `<flow>/<task>`, after whose end an operator was killed.
        failures: the tasks that failed, with the reason.
        lives: how many operators were started.
        cpu_seconds: the CPU time of all dead operators.
    """

    def __init__(self, site: Site, kubeconfig: Path, process: asyncio.subprocess.Process) -> None:
        self.boundaries: list[str] = []
        self.failures: list[str] = []
        self.lives = 0
        self.cpu_seconds = 0.0
        self._passed: list[str] = []
        self._site = site
        self._config = configuration(kubeconfig)
        self._process = process
        self._log = site.directory / "operator.log"

    async def killed_until(self, goal: Awaitable[object], *, every: int = 1) -> None:
        """Start operators until one reaches a goal; each dies at the next new boundary.

        The one that reaches the goal is killed, too.

        Args:
            every: 2 to kill at every second of the boundaries, and so on.
        """
        reached = asyncio.ensure_future(goal)
        try:
            while not reached.done():
                known = (*self.boundaries, *self._passed)
                await self._live(reached, {"known": known, "spared": every - 1})
            await reached
        finally:
            reached.cancel()

    async def undisturbed_until(self, goal: Awaitable[object]) -> None:
        """Start one operator, and kill it when a goal is reached."""
        await self.killed_after((), goal)

    async def killed_after(self, tasks: Iterable[str], goal: Awaitable[object]) -> None:
        """Start operators, each of which dies after a task, and one more that reaches a goal.

        That one is killed, too.

        Args:
            tasks: Their names.
        """
        reached = asyncio.ensure_future(goal)
        try:
            for task in (*tasks, ""):
                await self._live(reached, {"known": None, "fatal": task})
            await reached
        finally:
            reached.cancel()

    def log_tail(self) -> str:
        """Return the last lines of the operators' logs."""
        return "\n".join(self._log.read_text().splitlines()[-_MOST:])

    async def _live(self, reached: "asyncio.Future[object]", death: JsonObject) -> None:
        self.lives += 1
        pid = await self._begin(death)
        life = asyncio.create_task(self._follow())
        either: set[asyncio.Future[Any]] = {life, reached}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not life.done():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # not reaped: its parent waits for it
        status = await life
        if status != -signal.SIGKILL:
            raise AssertionError(f"an operator ended with {status}:\n{self.log_tail()}")

    async def _begin(self, death: JsonObject) -> int:
        assert self._process.stdin is not None
        life = {
            "config": self._config,
            "environment": self._site.operator_environment,
            "proxy": self._site.node.proxy,
            "log": str(self._log),
            **death,
        }
        self._process.stdin.write(orjson.dumps(life) + b"\n")
        while "pid" not in (said := await self._said()):
            self._note(said)
        return int(said["pid"])

    async def _follow(self) -> int:
        """Return the status with which an operator ends, once it is dead."""
        while "status" not in (said := await self._said()):
            self._note(said)
        self.cpu_seconds += said["cpu_seconds"]
        return int(said["status"])

    def _note(self, said: JsonObject) -> None:
        if "spared_at" in said:
            self._passed.append(said["spared_at"])
        if "died_after" in said:
            self.boundaries.append(said["died_after"])
        if "failed" in said:
            self.failures.append(said["failed"])

    async def _said(self) -> JsonObject:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the operators' process ended:\n{self.log_tail()}")
        said: JsonObject = orjson.loads(line)
        return said


@asynccontextmanager
async def operator_lives(site: Site) -> AsyncGenerator[OperatorLives]:
    """Yield operators on a site, with the permissions of the chart; none is left at the end."""
    kubeconfig = await install_operator(site)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.mortal_operator",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if "KUBECONFIG" not in k},
        cwd=Path.cwd(),
    )
    try:
        yield OperatorLives(site, kubeconfig, process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()  # and with it the operator, which dies with its parent
        await process.wait()
