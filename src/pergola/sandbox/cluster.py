"""Start, lookup and stop of sandboxes."""

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pergola.sandbox import binaries, control, directory, launch
from pergola.sandbox.components import ALL, APISERVER, ETCD, KUBELET, OWN_COMPONENTS, Components
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.plan import KUBECONFIG, PLAN, STATE, Plan
from pergola.sandbox.processes import ProcessId
from pergola.sandbox.progress import Progress, silent

THIS_PROCESS: Final = 0
"""Stands for the calling process as the owner of a sandbox."""


@dataclass(frozen=True)
class Sandbox:
    """A running control plane on this machine.

    Holds no connection, so any event loop and any process can use it.

    Attributes:
        name: the name to `find` it by.
        directory: its logs (`<component>.log`), certificates and data; removed when it stops.
    """

    name: str
    directory: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.directory / KUBECONFIG

    async def stop(self) -> None:
        """End all its processes and remove its files; nothing is left when this returns."""
        state = await control.command(self.directory, "status")
        await control.command(self.directory, "stop")
        await ProcessId(*state["supervisor"]).ended()

    async def restart_apiserver(self) -> None:
        """Restart the API server on the same port, and wait until it is ready."""
        await self.restart(APISERVER)

    async def restart(self, component: str) -> None:
        """Restart a component gracefully, as a rollout would; start it if it was killed."""
        from pergola.sandbox.readiness import Readiness

        await control.command(self.directory, "restart", component)
        if component in (ETCD, APISERVER):
            await Readiness(self.directory, self.kubeconfig).of_apiserver()

    async def kill(self, component: str) -> None:
        """Kill a component; it stays down until it is restarted."""
        await control.command(self.directory, "kill", component)

    async def pause(self, component: str) -> None:
        """Freeze a component: its connections stay open, but it does not answer."""
        await control.command(self.directory, "pause", component)

    async def resume(self, component: str) -> None:
        """Resume a paused component."""
        await control.command(self.directory, "resume", component)

    async def forward(self, host: str, port: int) -> int:
        """Forward a loopback port of this machine to an address inside a sandbox with a node.

        Args:
            host: the IP address of a Service, a pod or the node.

        Returns:
            The port, which stays open until the sandbox stops.
        """
        answer = await control.command(self.directory, "forward", host=host, port=port)
        return int(answer["port"])

    async def offer(self, port: int, at_port: int = 0) -> str:
        """Let pods of a sandbox with a node connect to a loopback port of this machine.

        Args:
            at_port: the port that they connect to; 0 for any.

        Returns:
            The address for them, `host:port`, until the sandbox stops. NetworkPolicies see a public
            network.
        """
        answer = await control.command(self.directory, "offer", port=port, at_port=at_port)
        return f"{answer['host']}:{answer['port']}"

    async def reboot(self) -> None:
        """Kill everything on the node at once, containers included, and restart it."""
        from pergola.sandbox.node.bring_up import power_on

        await control.command(self.directory, "power-off")
        await power_on(self.directory, self.kubeconfig)

    def state(self) -> dict[str, Any]:
        """Return the supervisor's last state: `ready`, `server`, `supervisor`, `components`."""
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
    """Start a sandbox, and return when it is ready.

    Args:
        name: lower-case letters, digits and dashes; names are unique among running sandboxes.
        components: the programs to run; at least etcd and kube-apiserver.
        apiserver_flags: extra flags for kube-apiserver.
        owner: PID of the process with which the sandbox ends; None: it runs until stopped.
        progress: receives progress lines; the first start builds programs for minutes.

    Raises:
        SandboxError: the sandbox cannot be started; nothing is left behind.
    """
    programs = await asyncio.to_thread(_programs, components, progress)
    await asyncio.to_thread(remove_crashed)
    lock = directory.claim(name)
    if lock is None:
        raise SandboxError(f'sandbox "{name}" is already running; use it, or stop it first')
    sandbox = Sandbox(name, directory.directory_of(name))
    try:
        # Not in a thread: cancellation must not leave a half-started supervisor.
        log = launch.spawn(name, lock, launch.Request(components, programs, apiserver_flags, owner))
    except BaseException:
        directory.remove(sandbox.directory)
        directory.give_up(name, lock)
        raise
    os.close(lock)
    try:
        await _bring_up(sandbox, components, progress)
    except BaseException as error:
        with contextlib.suppress(SandboxError):
            await asyncio.shield(sandbox.stop())
        text = launch.read_log(log)
        if isinstance(error, SandboxError) and text:
            raise SandboxError(f"{error}\n{text}") from error
        raise
    finally:
        os.close(log)
    return sandbox


def _programs(components: Components, progress: Progress) -> dict[str, Path]:
    if KUBELET not in components:
        return binaries.find(components, progress)
    from pergola.sandbox.node import requirements
    from pergola.sandbox.node.components import TOOLS

    requirements.check()
    built = tuple(c for c in components if c not in OWN_COMPONENTS)
    python = dict.fromkeys(OWN_COMPONENTS, Path(sys.executable))
    return binaries.find((*built, *TOOLS), progress) | python


async def _bring_up(sandbox: Sandbox, components: Components, progress: Progress) -> None:
    if KUBELET in components:
        from pergola.sandbox.node.bring_up import bring_up
    else:
        from pergola.sandbox.bring_up import bring_up
    await bring_up(sandbox.directory, sandbox.kubeconfig, components, progress)


def find(name: str = "default") -> Sandbox | None:
    """Return the sandbox of this name, or None unless it is running and ready."""
    sandbox = Sandbox(name, directory.directory_of(name))
    if not directory.is_claimed(name):
        return None
    with contextlib.suppress(OSError, ValueError):
        state = sandbox.state()
        # The claim may belong to a process that is cleaning up after a crash.
        if state["ready"] and ProcessId(*state["supervisor"]).alive:
            return sandbox
    return None


async def stop(name: str = "default") -> bool:
    """Stop the sandbox of this name, and clean up after crashed ones.

    Returns:
        Whether it was running.
    """
    remove_crashed()
    if not directory.is_claimed(name):
        return False
    await Sandbox(name, directory.directory_of(name)).stop()
    return True


def remove_crashed() -> None:
    """Remove the processes, cgroups and files that crashed sandboxes left behind."""
    for name in directory.names():
        lock = directory.claim(name)
        if lock is not None:
            sandbox = Sandbox(name, directory.directory_of(name))
            _kill_components(sandbox)
            _remove_cgroups(sandbox)
            directory.remove(sandbox.directory)
            directory.give_up(name, lock)


def _kill_components(sandbox: Sandbox) -> None:
    """Kill leftover components; usually the kernel has, through their parent-death signal."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for child in sandbox.state()["components"].values():
            if child["process"]:
                ProcessId(*child["process"]).kill()


def _remove_cgroups(sandbox: Sandbox) -> None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        plan: Plan = json.loads((sandbox.directory / PLAN).read_text())
        if plan["node"] is not None:
            from pergola.sandbox.node import cgroups

            cgroups.remove(plan["node"]["cgroups"])
