"""The process that owns a sandbox's components and ends them when the sandbox ends.

Started by `pergola.sandbox.start` as `python -m pergola.sandbox.supervisor DIRECTORY`, with the
plan in `plan.json` there; it imports only the standard library to stay small. It moves itself to
the background and executes one JSON command per connection to `control.sock`. When the owner exits
(observed through a pidfd), or on SIGTERM, it kills all components and removes the directory. If the
supervisor itself is killed, the kernel kills the components, and the next start of a sandbox
removes the directory. With a node, all processes but the first run in separate namespaces
(`node.enclosure`).
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import directory
from pergola.sandbox.child import Child
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import enclosure
from pergola.sandbox.node.forwarder import ANY, Address, Forwarder
from pergola.sandbox.plan import PLAN, SOCKET, STATE, Plan
from pergola.sandbox.processes import ProcessId
from pergola.sandbox.pumping import Connections, Stream


class Supervisor:
    """A server that runs the components of one plan in one directory."""

    def __init__(self, path: Path, plan: Plan, control: socket.socket, outside: "Outside") -> None:
        self._path = path
        self._plan = plan
        self._control = control
        self._outside = outside
        self._children = {
            name: Child(name, line, path, self._changed, outside.identify)
            for name, line in plan["commands"].items()
        }
        self._ended = asyncio.Event()
        self._ready = False
        self._last_callers: list[asyncio.StreamWriter] = []

    async def run(self) -> None:
        """Serve until stopped, signalled or orphaned; then kill all components."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ended.set)
        for process in (self._plan["starter"], self._plan["owner"]):
            if process is not None:
                loop.add_reader(process, self._ended.set)
        self._changed()
        callers = Connections()
        server = await asyncio.start_unix_server(callers.served_by(self._serve), sock=self._control)
        if self._plan["node"] is not None:
            await self._forward_api_server(self._plan["node"]["port"])
        try:
            await self._ended.wait()
        finally:
            await self._end()
            server.close()
            await callers.end()

    async def _forward_api_server(self, inside: int) -> None:
        port = socket.socket(fileno=self._plan["port"])
        await self._outside.forwarder.serve(port, Address("127.0.0.1", inside))

    async def _end(self) -> None:
        await self._outside.forwarder.close_all()
        async with TaskGroup() as group:
            for child in self._children.values():
                group.create_task(child.kill())

    async def _serve(self, caller: Stream) -> None:
        with contextlib.suppress(ConnectionError):
            request = json.loads(await caller.reader.readline() or "{}")
            if request.get("command") == "stop":
                # The caller waits until the connection closes, which happens at exit.
                self._last_callers.append(caller.writer)
                self._ended.set()
                return
            answer = await self._answer(request)
            caller.writer.write(json.dumps(answer).encode() + b"\n")
            await caller.writer.drain()
        caller.writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        command, child = request.get("command"), self._children.get(request.get("component", ""))
        if command == "ready":
            self._become_ready()
        if command in ("status", "ready"):
            return self._state()
        if command in ("forward", "offer", "close", "power-off") and self._plan["node"] is None:
            return {"error": f"cannot {command}: this sandbox has no node"}
        if command == "forward":
            return await self._forward(request)
        if command == "offer":
            return await self._offer(request)
        if command == "close":
            self._outside.forwarder.close(request["host"])
            return self._state()
        if command == "power-off":
            await self._power_off()
            return self._state()
        if child is None:
            return {"error": f"this sandbox has no component {request.get('component')!r}"}
        try:
            await child.obey(str(command))
        except SandboxError as error:
            return {"error": str(error)}
        return self._state()

    async def _forward(self, request: dict[str, Any]) -> dict[str, Any]:
        at = Address(request.get("at_host", ANY.host), request.get("at_port", ANY.port))
        try:
            found = await self._outside.forwarder.forward(
                Address(request["host"], request["port"]), at
            )
        except SandboxError as error:
            return {"error": str(error)}
        return {"port": found.port}

    async def _offer(self, request: dict[str, Any]) -> dict[str, Any]:
        port, at_port = request["port"], request.get("at_port", 0)
        try:
            found = await self._outside.forwarder.offer(port, at_port=at_port)
        except SandboxError as error:
            return {"error": str(error)}
        return found._asdict()

    async def _power_off(self) -> None:
        for child in self._children.values():
            await child.kill()
        self._outside.enclosure.kill_all()

    def _become_ready(self) -> None:
        asyncio.get_running_loop().remove_reader(self._plan["starter"])
        self._ready = True
        self._changed()

    def _state(self) -> dict[str, Any]:
        return {
            "supervisor": self._outside.first,
            "ready": self._ready,
            "server": self._plan["server"],
            "components": {name: child.state() for name, child in self._children.items()},
        }

    def _changed(self) -> None:
        if self._path.exists():
            # A full disk must not end the sandbox; `status` reports the current state.
            with contextlib.suppress(OSError):
                directory.write(self._path / STATE, json.dumps(self._state()))


class Outside:
    """The supervisor's handles on the machine, valid inside and outside of separate namespaces.

    Create it in the sandbox's first process, which ends last.
    """

    def __init__(self) -> None:
        self.first = ProcessId.of(os.getpid())
        self._processes = os.open("/proc", os.O_PATH)
        self.enclosure = enclosure.Enclosure()
        self.forwarder = Forwarder(os.open("/proc/self/ns/net", os.O_RDONLY))

    def identify(self, pid: int) -> ProcessId | None:
        """Return a process of the supervisor's namespace as the machine sees it."""
        return ProcessId.seen_from(self._processes, pid)


def main() -> None:
    """Read the plan, move to the background, and supervise."""
    path = Path(sys.argv[1])
    plan: Plan = json.loads((path / PLAN).read_text())
    os.umask(0o077)
    os.chdir(path)
    # The caller continues when the foreground process exits; the socket must exist by then.
    with socket.socket(socket.AF_UNIX) as control:
        control.bind(str(path / SOCKET))
        control.listen()
        if os.fork():
            os._exit(0)  # avoids running the exit handlers twice
        os.setsid()
        try:
            _supervise(path, plan, control)
        finally:
            directory.remove(path)
            directory.give_up(plan["name"], plan["lock"])


def _supervise(path: Path, plan: Plan, control: socket.socket) -> None:
    outside = Outside()

    def run() -> None:
        asyncio.run(Supervisor(path, plan, control, outside).run())

    if plan["node"] is None:
        run()
    else:
        enclosure.run(path, plan["node"], run)


if __name__ == "__main__":
    main()
