"""A component as a process: started, stopped, paused, and restarted when it fails."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pergola.kube.child_process import send
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.processes import ProcessId, die_with

_GRACE: Final = 2.0
_RESTART_DELAY: Final = 1.0
# Garbage collection took a quarter of the CPU time of an API server with Go's default of 100.
_COLLECT_SELDOM: Final = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
Identify = Callable[[int], ProcessId | None]


class Child:
    """A component of the sandbox.

    Restarted when it exits by itself, as the kubelet would do, but not after `stop` or `kill`.

    Args:
        name: the component.
        line: its command line.
        directory: its working directory; its output goes to `<name>.log` there.
        changed: called after each change of its state.
        identify: maps a PID to the process as seen from outside.
        environment: its variables; None: those of this process. Go's garbage collector runs
            seldom unless they say otherwise.
    """

    def __init__(
        self,
        name: str,
        line: list[str],
        directory: Path,
        changed: Callable[[], None],
        identify: Identify = ProcessId.of,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._line = line
        self._directory = directory
        self._changed = changed
        self._identify = identify
        given = os.environ if environment is None else environment
        self._environment = {**_COLLECT_SELDOM, **given}
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._paused = False
        self._failures = 0
        self.exit_code: int | None = None
        self._obeying = asyncio.Lock()

    def state(self) -> dict[str, Any]:
        """Return its state, its process, and how often it exited by itself."""
        running = self._process is not None
        word = "paused" if self._paused else "running" if running else "stopped"
        process = self._identify(self._process.pid) if self._process else None
        return {"state": word, "process": process, "failures": self._failures}

    async def obey(self, command: str) -> None:
        """Execute a command: `start`, `restart`, `kill`, `pause` or `resume`.

        Raises:
            SandboxError: the command is unknown, or the component is not running.
        """
        async with self._obeying:
            if command == "start":
                await self.start()
            elif command == "restart":
                await self.stop()
                await self.start()
            elif command == "kill":
                await self.kill()
            elif command in ("pause", "resume"):
                self._hold(paused=command == "pause")
            else:
                raise SandboxError(f"unknown command {command!r}")

    async def start(self) -> None:
        """Start the process unless it is running."""
        if self._process is None:
            await self._spawn()
            self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Terminate the process, and kill it if it has not exited after two seconds."""
        await self._let_go()
        if self._process is not None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _GRACE)
        await self.kill()

    async def kill(self) -> None:
        """Kill the process, and do not restart it."""
        await self._let_go()
        if self._process is not None:
            self._signal(signal.SIGKILL)
            await self._process.wait()
        self._process, self._paused = None, False
        self._changed()

    async def _let_go(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])

    def _hold(self, *, paused: bool) -> None:
        if self._process is None:
            raise SandboxError(f"{self._name} is not running; start it first")
        self._signal(signal.SIGSTOP if paused else signal.SIGCONT)
        self._paused = paused
        self._changed()

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                self.exit_code = await self._process.wait()
            self._process, self._paused = None, False
            self._failures += 1
            self._changed()
            await asyncio.sleep(_RESTART_DELAY)
            with contextlib.suppress(SandboxError):
                await self._spawn()

    async def _spawn(self) -> None:
        parent = os.getpid()
        log = os.open(
            self._directory / f"{self._name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._line,
                cwd=self._directory,
                env=self._environment,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: die_with(parent),
            )
        except OSError as error:
            raise SandboxError(f"cannot run {self._line[0]}: {error.strerror}") from error
        finally:
            os.close(log)
        self._changed()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            send(self._process, number)
