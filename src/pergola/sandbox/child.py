"""One component as a process: started, stopped, paused, and started again when it fails."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.processes import ProcessId, die_with

_GRACE: Final = 2.0
_RESTART_DELAY: Final = 1.0
Identify = Callable[[int], ProcessId | None]


class Child:
    """A component of the sandbox.

    As the kubelet would, it is started again when it ends by itself; not, when it was told to end.

    Args:
        name: the component.
        line: its command line.
        directory: where it runs; its output goes to `<name>.log` there.
        changed: called whenever its state did.
        identify: how a process is known outside.
    """

    def __init__(
        self,
        name: str,
        line: list[str],
        directory: Path,
        changed: Callable[[], None],
        identify: Identify = ProcessId.of,
    ) -> None:
        self._name = name
        self._line = line
        self._directory = directory
        self._changed = changed
        self._identify = identify
        self._process: Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._paused = False
        self._failures = 0
        self._obeying = asyncio.Lock()

    def state(self) -> dict[str, Any]:
        """What it does, as which process, and how often it ended by itself."""
        running = self._process is not None
        word = "paused" if self._paused else "running" if running else "stopped"
        process = self._identify(self._process.pid) if self._process else None
        return {"state": word, "process": process, "failures": self._failures}

    async def obey(self, command: str) -> None:
        """Does what was asked: `start`, `restart`, `kill`, `pause` or `resume`.

        Raises:
            SandboxError: there is no such command, or the component does not run.
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
                raise SandboxError(f"there is no command {command!r}")

    async def start(self) -> None:
        """Starts it, if it does not run."""
        if self._process is None:
            await self._spawn()
            self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Asks it to end, and kills it if it does not within two seconds."""
        await self._let_go()
        if self._process is not None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _GRACE)
        await self.kill()

    async def kill(self) -> None:
        """Kills it, at once, and leaves it so."""
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
            raise SandboxError(f"{self._name} does not run; start it first")
        self._signal(signal.SIGSTOP if paused else signal.SIGCONT)
        self._paused = paused
        self._changed()

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                await self._process.wait()
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
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
