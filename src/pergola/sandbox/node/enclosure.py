"""The namespaces in which a node lives, and the two processes that hold them.

The sandbox's first process stays outside. It starts `init`, the first process of a PID namespace,
which makes the other namespaces, starts the supervisor in them, and reaps orphans: containers'
processes whose shim ended. When the supervisor ends, `init` ends; the kernel then kills whatever is
in the namespace, and with the last process all mounts, interfaces and rules are gone. What is left,
the cgroups, is removed from outside. When the first process is killed, so is `init`.
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
    """The namespaces, as their supervisor knows them; to be made outside."""

    def __init__(self) -> None:
        self._outside = _process_namespace()

    def kill_all(self) -> None:
        """Kill all processes of the node but `init` and the caller, as a power failure would.

        Raises:
            AssertionError: the caller is not inside.
        """
        if _process_namespace() == self._outside:
            raise AssertionError("this would kill processes that are not the node's")
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # reaches nothing outside of the namespace


def run(directory: Path, plan: NodePlan, supervise: Callable[[], None]) -> None:
    """Runs `supervise` in namespaces of its own; nothing but files is left when this returns."""
    outside = os.pidfd_open(os.getpid())
    try:
        kernel.unshare(kernel.NEW_PROCESSES)
        init = os.fork()
        if init == 0:
            _exit_with(lambda: _init(outside, directory, plan, supervise))
        # An end of this process is the end of all, in the same way as when it is killed.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(init, signal.SIGKILL))
        os.waitpid(init, 0)
    finally:
        cgroups.remove(plan["cgroups"])


def _init(outside: int, directory: Path, plan: NodePlan, supervise: Callable[[], None]) -> None:
    die_with(0)  # the number of a parent outside of the namespace
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
    """Ends the process after the work, without the exit handlers of the one that was forked."""
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
