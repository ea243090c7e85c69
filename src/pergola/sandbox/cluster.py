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
from pergola.sandbox.plan import KUBECONFIG, PLAN, STATE, Plan
from pergola.sandbox.processes import ProcessId
from pergola.sandbox.progress import Progress, silent

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
        return self.directory / KUBECONFIG

    async def stop(self) -> None:
        """Ends all of its processes and removes its files; nothing is left when this returns."""
        state = await control.command(self.directory, "status")
        await control.command(self.directory, "stop")
        await ProcessId(*state["supervisor"]).ended()

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
    sandbox = Sandbox(name, directory.directory_of(name))
    try:
        # Not in a thread: when this is cancelled, no half-started supervisor must be left.
        _spawn(sandbox, lock, owner, components, programs, apiserver_flags)
    except BaseException:
        directory.remove(sandbox.directory)
        directory.give_up(name, lock)
        raise
    os.close(lock)
    try:
        await _bring_up(sandbox, components, progress)
    except BaseException:
        with contextlib.suppress(SandboxError):
            await asyncio.shield(sandbox.stop())
        raise
    return sandbox


def find(name: str = "default") -> Sandbox | None:
    """The sandbox of this name, if it runs and is ready."""
    sandbox = Sandbox(name, directory.directory_of(name))
    if not directory.is_claimed(name):
        return None
    with contextlib.suppress(OSError, ValueError):
        state = sandbox.state()
        # The claim may be that of somebody who removes what a crashed sandbox left.
        if state["ready"] and ProcessId(*state["supervisor"]).alive:
            return sandbox
    return None


async def stop(name: str = "default") -> bool:
    """Stops the sandbox of this name, and removes what a crashed one left.

    Returns:
        Whether one was running.
    """
    remove_crashed()
    if not directory.is_claimed(name):
        return False
    await Sandbox(name, directory.directory_of(name)).stop()
    return True


def remove_crashed() -> None:
    """Removes what sandboxes left that ended without their supervisor's doing."""
    for name in directory.names():
        lock = directory.claim(name)
        if lock is not None:
            sandbox = Sandbox(name, directory.directory_of(name))
            _kill_components(sandbox)
            directory.remove(sandbox.directory)
            directory.give_up(name, lock)


def _kill_components(sandbox: Sandbox) -> None:
    """The kernel did this already, unless somebody took that from the components."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for child in sandbox.state()["components"].values():
            if child["process"]:
                ProcessId(*child["process"]).kill()


def _spawn(
    sandbox: Sandbox,
    lock: int,
    owner: int | None,
    components: Components,
    programs: dict[str, Path],
    apiserver_flags: tuple[str, ...],
) -> None:
    from pergola.sandbox import files

    with contextlib.ExitStack() as held:
        port = held.enter_context(_reserve_port())
        layout = Layout(directory.make(sandbox.name), port.getsockname()[1])
        files.write_all(layout)
        lines = commands(components, layout, programs, apiserver_flags)
        plan = Plan(
            name=sandbox.name,
            lock=lock,
            port=port.fileno(),
            starter=_watch(os.getpid(), held),
            owner=None if owner is None else _watch(owner or os.getpid(), held),
            commands={command.component: list(command.line) for command in lines},
            server=layout.server,
        )
        directory.write(sandbox.directory / PLAN, json.dumps(plan))
        _run_supervisor(sandbox.directory, plan)


def _reserve_port() -> socket.socket:
    """A free port that stays ours: bound, never listening, and shared with the API server only."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _watch(process: int, held: contextlib.ExitStack) -> int:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError as error:
        raise SandboxError(f"process {process}, which is to own the sandbox, is gone") from error
    held.callback(os.close, descriptor)
    return descriptor


def _run_supervisor(path: Path, plan: Plan) -> None:
    inherited = [plan["lock"], plan["port"], plan["starter"]]
    if plan["owner"] is not None:
        inherited.append(plan["owner"])
    log = os.open(path / "supervisor.log", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        subprocess.run(
            [sys.executable, "-m", "pergola.sandbox.supervisor", str(path)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=inherited,
        )
    except subprocess.CalledProcessError as error:
        text = (path / "supervisor.log").read_text(errors="replace").strip()
        raise SandboxError(f"the sandbox's supervisor does not start:\n{text}") from error
    finally:
        os.close(log)


async def _bring_up(sandbox: Sandbox, components: Components, progress: Progress) -> None:
    from pergola.sandbox.readiness import Readiness

    readiness = Readiness(sandbox.directory, sandbox.kubeconfig)
    progress("starting etcd and kube-apiserver")
    for component in (ETCD, APISERVER):
        await control.command(sandbox.directory, "start", component)
    await readiness.of_apiserver()
    rest = [c for c in ALL if c in components and c not in (ETCD, APISERVER)]
    if rest:
        progress(f"starting {', '.join(rest)}")
    for component in rest:
        await control.command(sandbox.directory, "start", component)
    if KWOK in components:
        await readiness.of_nodes()
    if CONTROLLER_MANAGER in components:
        await readiness.of_controllers()
    await control.command(sandbox.directory, "ready")
