"""One webhook worker, from the point of view of its parent process."""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from typing import Final, Self

from pergola.admission.workers.messages import FAILED, METRICS, SERVING, Channel, open_channel
from pergola.api.objects import JsonObject
from pergola.kube.child_process import send
from pergola.runtime.summed_metrics import Family

_METRICS_SECONDS: Final = 2.0


class WorkerProcess:
    """A running worker.

    Attributes:
        families: its metrics when last read.
    """

    def __init__(self, process: asyncio.subprocess.Process, channel: Channel) -> None:
        self.families: list[Family] = []
        self._process = process
        self._channel = channel
        self._asking = asyncio.Lock()
        self._asked = 0

    @classmethod
    async def start(cls, module: str, task: JsonObject) -> Self:
        """Start a worker with a task.

        Args:
            module: its main module.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            # Without -P, a module in the working directory would take precedence over the installed
            # one.
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", module, stdin=theirs.fileno()
            )
        channel = await open_channel(ours)
        with suppress(OSError):  # it is gone already; its exit status says more
            await channel.send(**task)
        return cls(process, channel)

    async def serves(self) -> str | None:
        """Return None once it serves, or the reason why it does not."""
        said = await self._channel.receive()
        if said is not None and said.get(SERVING):
            return None
        if said is not None and FAILED in said:
            return str(said[FAILED])
        return await self.ended()

    async def ended(self) -> str:
        """Return a description of its end, once it has ended."""
        code = await self._process.wait()
        if code >= 0:
            return f"it exited with {code}"
        name = signal.Signals(-code).name
        hint = "; the container may need more memory" if name == "SIGKILL" else ""
        return f"it was killed by {name}{hint}"

    async def read_metrics(self) -> None:
        """Read its metrics; keep the known ones if it does not answer."""
        async with self._asking:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_METRICS_SECONDS):
                    await self._ask()

    async def _ask(self) -> None:
        """Send a request and wait for its answer, skipping late answers to earlier ones."""
        self._asked += 1
        await self._channel.send(ask=self._asked)
        while (said := await self._channel.receive()) is not None:
            if said["asked"] == self._asked:
                self.families = [Family(*family) for family in said[METRICS]]
                return

    def dismiss(self) -> None:
        """Let it finish its requests and end."""
        self._channel.close()

    async def join(self, seconds: float) -> None:
        """Wait for its end; kill it if it takes too long."""
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            send(self._process, signal.SIGKILL)
            await self._process.wait()
