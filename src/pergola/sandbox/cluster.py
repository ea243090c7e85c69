"""Starting, finding and stopping sandboxes."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pergola.sandbox import binaries, control, directory
from pergola.sandbox.components import (
    ALL,
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    Components,
    Layout,
    commands,
)
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.processes import ProcessId
from pergola.sandbox.progress import Progress, silent
from pergola.sandbox.supervisor import PLAN, STATE, Plan

THIS_PROCESS: Final = 0


@dataclass(frozen=True)
class Sandbox:
    """A running control plane on this machine.

    Holds no connection, so that it may be used from any event loop, and from other processes.

    Attributes:
        name: by which `find` finds it.
        directory: its files: logs (`<component>.log`), certificates, data. Gone when it stops.
    """

    name: str
    directory: Path

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator."""
        return self.directory / "kubeconfig"

    async def stop(self) -> None:
        """Ends all of its processes and removes its files; nothing is left when this returns."""
        await control.command(self.directory, "stop")

    async def restart_apiserver(self) -> None:
        """Ends the API server, starts it anew on the same port, and waits until it is ready."""
        await self.restart(APISERVER)

    async def restart(self, component: str) -> None:
        """Ends a component as a rollout would, and starts it anew, also where it was killed."""
        from pergola.sandbox.readiness import Readiness

        await control.command(self.directory, "restart", component)
        if component in (ETCD, APISERVER):
            await Readiness(self.directory, self.kubeconfig).of_apiserver()

    async def kill(self, component: str) -> None:
        """Kills a component; it stays down until it is restarted."""
        await control.command(self.directory, "kill", component)

    async def pause(self, component: str) -> None:
        """Freezes a component: its connections stay open, and nobody answers."""
        await control.command(self.directory, "pause", component)

    async def resume(self, component: str) -> None:
        """Lets a paused component go on."""
        await control.command(self.directory, "resume", component)

    def state(self) -> dict[str, Any]:
        """What its supervisor wrote last: `ready`, `server`, `supervisor`, `components`."""
        state: dict[str, Any] = json.loads((self.directory / STATE).read_text())
        return state


async def start(
    name: str = "default",
    *,
    components: Components = ALL,
    apiserver_flags: tuple[str, ...] = (),
    owner: int | None = THIS_PROCESS,
    progress: Progress = silent,
) -> Sandbox:
    """Starts a sandbox; returns when it can be used.

    Args:
        name: lower-case letters, digits and dashes; one sandbox of a name runs at a time.
        components: which programs to run; etcd and kube-apiserver at least.
        apiserver_flags: further flags of kube-apiserver.
        owner: the process whose end is the sandbox's end; None: it runs until it is stopped.
        progress: is told what is going on; the first time the binaries are built, for minutes.

    Raises:
        SandboxError: it cannot be started; nothing is left behind.
    """
    programs = await asyncio.to_thread(binaries.find, components, progress)
    await asyncio.to_thread(remove_crashed)
    lock = directory.claim(name)
    if lock is None:
        raise SandboxError(f'sandbox "{name}" runs already; use it, or stop it first')
    path = directory.directory_of(name)
    try:
        with _descriptors(lock, owner) as plan:
            layout = Layout(directory.make(name), _port_of(plan["port"]))
            plan["name"], plan["server"] = name, layout.server
            lines = commands(components, layout, programs, apiserver_flags)
            plan["commands"] = {line.component: list(line.line) for line in lines}
            await asyncio.to_thread(_prepare, layout, plan)
    except BaseException:
        directory.remove(path)
        directory.give_up(name, lock)
        raise
    os.close(lock)
    sandbox = Sandbox(name, path)
    try:
        await _bring_up(sandbox, components, progress)
    except BaseException:
        with contextlib.suppress(SandboxError):
            await asyncio.shield(asyncio.ensure_future(sandbox.stop()))
        raise
    return sandbox
