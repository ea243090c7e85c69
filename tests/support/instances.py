"""Resource managers as separate processes, to be killed."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from pergola.api.objects import JsonObject

_INSTALLED: Final = (Path(sys.executable).parent / "pergola", "resource-manager")


class Instance:
    """A `pergola resource-manager` process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it is dead."""
        self._signal(signal.SIGKILL)
        await self.process.wait()

    def pause(self) -> None:
        """Suspend it, as an overloaded machine would, unless it has ended."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it after a pause, unless it has ended."""
        self._signal(signal.SIGCONT)

    async def end(self) -> int:
        """Ask it to end, and return its exit code."""
        if self.process.returncode is None:
            self.process.terminate()
        return await self.process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


class Instances:
    """Starts instances on one sandbox."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._started: list[Instance] = []

    async def start(
        self,
        *,
        elect: bool = False,
        name: str = "a",
        config: JsonObject | None = None,
        command: Sequence[str | Path] = _INSTALLED,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Instance:
        """Start one instance; several share a Lease with `elect`.

        Args:
            config: blocks of the configuration that replace the default ones.
            command: the program, to which the path of the configuration is appended.
            environment: additional variables.
        """
        settings = {
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "sourceClientConnection": {"kubeconfig": str(self._kubeconfig)},
            "targetClientConnection": {"kubeconfig": str(self._kubeconfig)},
            "leaderElection": {
                "leaderElect": elect,
                "resourceNamespace": "kube-system",
                # Long enough for a process on a busy machine to renew it.
                "leaseDuration": "8s",
                "renewDeadline": "6s",
                "retryPeriod": "500ms",
            },
            "server": {
                "healthProbes": {"bindAddress": "127.0.0.1", "port": 0},
                "metrics": {"bindAddress": "127.0.0.1", "port": 0},
            },
            "logFormat": "text",
            **(config or {}),
        }
        path = self._folder / f"{name}.json"
        path.write_bytes(orjson.dumps(settings))
        with (self._folder / f"{name}.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--config",
                path,
                stdout=output,
                stderr=output,
                env={k: v for k, v in os.environ.items() if "KUBECONFIG" not in k}
                | dict(environment),
            )
        instance = Instance(process)
        self._started.append(instance)
        return instance

    async def kill_all(self) -> None:
        """Kill all running instances with SIGKILL."""
        for instance in self._started:
            await instance.kill()
