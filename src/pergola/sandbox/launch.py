"""Start of a sandbox's supervisor, with the files that it and its components read."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox import directory
from pergola.sandbox.components import KUBELET, SERVICES, Components, Layout, commands
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import RUNC
from pergola.sandbox.plan import PLAN, NodePlan, Plan

_LOG_TAIL: Final = 2000  # bytes
# The usual port of API servers, which NetworkPolicies name.
_PORT_INSIDE: Final = 6443


class Request(NamedTuple):
    """The components to run, and the process that owns the sandbox.

    Attributes:
        programs: the program of each component, and the programs that components run.
        apiserver_flags: extra flags for kube-apiserver.
        owner: PID of the process with which the sandbox ends; 0: the caller; None: no owner.
    """

    components: Components
    programs: dict[str, Path]
    apiserver_flags: tuple[str, ...]
    owner: int | None

    @property
    def node(self) -> bool:
        """Whether the sandbox has a real node."""
        return KUBELET in self.components


def spawn(name: str, lock: int, request: Request) -> int:
    """Start the supervisor in the background.

    Args:
        lock: the claim on the name, which the supervisor inherits.

    Returns:
        A descriptor of the supervisor's log, readable even after the directory was removed.

    Raises:
        SandboxError: the supervisor does not start.
    """
    path = directory.make(name)
    with contextlib.ExitStack() as held:
        port = held.enter_context(_reserve_port())
        layout = Layout(path, port.getsockname()[1], _PORT_INSIDE if request.node else None)
        owner = request.owner
        plan = Plan(
            name=name,
            lock=lock,
            port=port.fileno(),
            starter=_watch(os.getpid(), held),
            owner=None if owner is None else _watch(owner or os.getpid(), held),
            commands=_prepare(layout, request),
            server=layout.server,
            node=_node_plan(layout) if request.node else None,
        )
        directory.write(path / PLAN, json.dumps(plan))
        return _run_supervisor(path, plan)


def _prepare(layout: Layout, request: Request) -> dict[str, list[str]]:
    """Write the components' files, and return their command lines."""
    from pergola.sandbox import files

    flags = None
    if request.node:
        from pergola.sandbox.node import components, configuration

        hosts = (configuration.NODE_ADDRESS, configuration.NODE)
        authority = files.write_all(layout, configuration.IDENTITIES, hosts)
        configuration.write_all(layout, authority, request.programs[RUNC])
        components.link_programs(layout, request.programs)
        flags = components.flags(layout)
    else:
        files.write_all(layout)
    lines = commands(request.components, layout, request.programs, request.apiserver_flags, flags)
    return {command.component: list(command.line) for command in lines}


def _node_plan(layout: Layout) -> NodePlan:
    from pergola.sandbox.node import cgroups
    from pergola.sandbox.node.configuration import NODE, NODE_ADDRESS
    from pergola.sandbox.node.network import GATEWAY

    return NodePlan(
        name=NODE,
        address=NODE_ADDRESS,
        port=layout.secure_port,
        services=SERVICES,
        gateway=GATEWAY,
        cgroups=cgroups.folders(layout.directory),
    )


def _reserve_port() -> socket.socket:
    """Reserve a free port for the API server with a socket that is bound but never listens."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _watch(process: int, held: contextlib.ExitStack) -> int:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError as error:
        raise SandboxError(
            f"process {process}, which should own the sandbox, has exited; name a running one"
        ) from error
    held.callback(os.close, descriptor)
    return descriptor


def _run_supervisor(path: Path, plan: Plan) -> int:
    inherited = [plan["lock"], plan["port"], plan["starter"]]
    if plan["owner"] is not None:
        inherited.append(plan["owner"])
    log = os.open(path / "supervisor.log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
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
        text = read_log(log)
        os.close(log)
        raise SandboxError(f"the sandbox's supervisor does not start:\n{text}") from error
    return log


def read_log(log: int) -> str:
    """Return the last part of a supervisor's log."""
    size = os.fstat(log).st_size
    return os.pread(log, _LOG_TAIL, max(0, size - _LOG_TAIL)).decode(errors="replace").strip()
