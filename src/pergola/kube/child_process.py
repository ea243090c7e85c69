"""Signals to child processes, and the end of those whose output is a pipe.

asyncio polls a process when its transport is closed and, in Python 3.11 and 3.12, before it sends a
signal. If such a poll is the one that reaps the process, asyncio has lost its return code, and
reports 255. So this sends signals without polling.
"""

import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process; do nothing if it has ended."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def end(process: Process) -> None:
    """Kill a process, and return when it has ended.

    asyncio reports the end of a process only after the end of its output, which may never come:
    asyncio stops reading when its buffer is full, and another process may hold the pipe open. So
    this closes the pipes.
    """
    send(process, signal.SIGKILL)
    # No public name leads from a process to its transport.
    transport = process._transport  # type: ignore[attr-defined] # noqa: SLF001
    for descriptor in range(3):
        if pipe := transport.get_pipe_transport(descriptor):
            pipe.close()
    await process.wait()
