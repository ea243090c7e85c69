"""The namespaces of a node, and the two processes that hold them.

The sandbox's first process stays outside. It starts `init`, the first process of a PID namespace,
which creates the other namespaces, starts the supervisor in them, and reaps orphans: processes of
containers whose shim ended. When the supervisor ends, `init` ends; the kernel then kills all
processes in the namespace and removes their mounts, interfaces and rules. The first process removes
the cgroups from outside. If it is killed, the kernel kills `init`.
"""

import contextlib
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import cgroups, inside, kernel
from pergola.sandbox.plan import NodePlan
from pergola.sandbox.processes import die_with


class Enclosure:
    """The supervisor's handle on the namespaces; create it outside of them."""

    def __init__(self) -> None:
        self._outside = _process_namespace()

    def kill_all(self) -> None:
        """Kill all processes of the node except `init` and the caller, as a power failure would.

        Raises:
            AssertionError: the caller is outside of the namespaces.
        """
        if _process_namespace() == self._outside:
            raise AssertionError("refusing to kill processes outside of the node's namespaces")
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # reaches only processes in the namespace


def run(directory: Path, plan: NodePlan, supervise: Callable[[], None]) -> None:
    """Run `supervise` in new namespaces; only files are left when this returns."""
    outside = os.pidfd_open(os.getpid())
    try:
        kernel.unshare(kernel.NEW_PROCESSES)
        init = os.fork()
        if init == 0:
            _exit_with(lambda: _init(outside, directory, plan, supervise))
        # SIGTERM ends everything, just as killing this process does.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(init, signal.SIGKILL))
        os.waitpid(init, 0)
    finally:
        cgroups.remove(plan["cgroups"])


def _init(outside: int, directory: Path, plan: NodePlan, supervise: Callable[[], None]) -> None:
    die_with(0)  # PID 0 is a parent outside of the namespace
    if select.select([outside], [], [], 0)[0]:
        return
    os.close(outside)
    inside.enter(directory, plan)
    supervisor = os.fork()
    if supervisor == 0:
        die_with(os.getppid())
        _exit_with(supervise)
    while os.wait()[0] != supervisor:
        pass


def _exit_with(work: Callable[[], None]) -> NoReturn:
    """Run the work and exit, without running the exit handlers inherited by the fork."""
    try:
        work()
    except SandboxError as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201 - this is the sandbox's log
        os._exit(1)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _process_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())
