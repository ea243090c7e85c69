"""The end of child processes whose output is a pipe."""

from asyncio.subprocess import Process
from contextlib import suppress


async def end(process: Process) -> None:
    """Kill a process, and return when it has ended.

    asyncio reports the end of a process only after the end of its output, which may never come:
    asyncio stops reading when its buffer is full, and another process may hold the pipe open. So
    this closes the pipes.
    """
    with suppress(ProcessLookupError):
        process.kill()
    # No public name closes the pipes.
    process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001
    await process.wait()
