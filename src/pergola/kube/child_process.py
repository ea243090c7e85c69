"""The end of child processes whose output is a pipe."""

from asyncio.subprocess import Process
from contextlib import suppress


async def end(process: Process) -> None:
    """Kill a process, and return when it has ended.

    asyncio reports the end of a process only after the end of its output. It pauses reading while
    nobody takes what was read, and another process may keep the pipe open. So close it.
    """
    with suppress(ProcessLookupError):
        process.kill()
    # No public name closes the pipes.
    process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001
    await process.wait()
