"""Identities of processes, and the termination of children with their parents."""

import asyncio
import ctypes
import os
import signal
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
# Loaded before any fork: the child must not take the loader's locks.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Fields of /proc/PID/stat, counted after the state.
_THREADS_FIELD: Final = 16
_START_TIME_FIELD: Final = 18


class ProcessId(NamedTuple):
    """A process, distinguished from later ones with the same PID.

    Attributes:
        started: clock ticks between the machine's start and the process's.
    """

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """Return the process that has this PID now; None if it does not exist or is a zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        return _parse(pid, stat)

    @classmethod
    def seen_from(cls, proc: int, pid: int) -> "ProcessId | None":
        """Return a process of the caller's PID namespace as seen from another one.

        Args:
            proc: a descriptor of the other namespace's `/proc`.
            pid: the PID in the caller's namespace.
        """
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        try:
            # In fdinfo the kernel shows a pidfd's PID in the namespace of that /proc.
            info = _read(proc, f"self/fdinfo/{handle}")
            number = int(info.partition("Pid:")[2].split()[0])
            return _parse(number, _read(proc, f"{number}/stat"))
        except OSError:
            return None
        finally:
            os.close(handle)

    @property
    def alive(self) -> bool:
        """Whether this process, not a later one with the same PID, still runs."""
        return ProcessId.of(self.pid) == self

    def kill(self) -> None:
        """Kill this process if it still runs, but never a later one with the same PID."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # A handle keeps referring to the same process: compare only once it is held.
            if self.alive:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)

    async def ended(self) -> None:
        """Wait until this process has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(handle, gone.set)
        try:
            # A handle keeps referring to the same process: compare only once it is held.
            if self.alive:
                await gone.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)


def die_with(parent: int) -> None:
    """Have the kernel kill the calling process when its parent ends, even by `kill -9`.

    Call this in a child between fork and exec.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _parse(pid: int, stat: str) -> ProcessId | None:
    state, *fields = stat.rpartition(")")[2].split()
    # The first thread of a killed process can be a zombie while others still hold files and locks.
    if state in "ZX" and int(fields[_THREADS_FIELD]) <= 1:
        return None
    return ProcessId(pid, int(fields[_START_TIME_FIELD]))


def _read(folder: int, name: str) -> str:
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:
        return file.read()
