"""Client of the supervisor of a running sandbox."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.plan import SOCKET

_PATIENCE: Final = 30.0


async def command(
    directory: Path, word: str, component: str = "", **arguments: str | int
) -> dict[str, Any]:
    """Send a command, and return the resulting state of the sandbox.

    Args:
        directory: the sandbox's directory.
        word: `status`, `ready`, `stop`, `forward`, `offer`, `close` or `power-off`; or, with a
            component, a command of `Child.obey`.
        component: the component to act on.
        arguments: the command's other arguments.

    Raises:
        SandboxError: the supervisor does not answer, or rejects the command.
    """
    request = json.dumps({"command": word, "component": component, **arguments}).encode() + b"\n"
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await _exchange(directory / SOCKET, request)
    except (OSError, TimeoutError) as error:
        raise SandboxError(f"the sandbox in {directory} does not answer; is it stopped?") from error
    state: dict[str, Any] = json.loads(answer or b"{}")
    if "error" in state:
        raise SandboxError(state["error"])
    return state


async def _exchange(socket: Path, request: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    try:
        writer.write(request)
        await writer.drain()
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
