"""The original's resource manager and Pergola's, each on an API server of its own.

Both clusters get the same writes, so what the two processes leave behind can be compared.
"""

import asyncio
import copy
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from bench.peer import original
from bench.processes import Program, installed, resource_manager
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, Invalid
from pergola.kube.kubeconfig import load
from pergola.runtime.task_group import gathered
from pergola.sandbox import API_ONLY
from pergola.testing.crds import install_crds
from pergola.testing.shared import private

T = TypeVar("T")

PATIENCE: Final = 90.0
"""Seconds after which a difference is one: the original repairs some things at its next sync."""
_PAUSE: Final = 0.2
_BEFORE_A_NUDGE: Final = 5.0


class Difference(NamedTuple):
    """A value that differs; None if only the other side has it."""

    theirs: object
    ours: object

    def __str__(self) -> str:
        return f"\n    theirs {self.theirs}\n    ours   {self.ours}"


@dataclass(frozen=True)
class Sides:
    """A client of the cluster of each resource manager; what tests write is written to both."""

    theirs: Client
    ours: Client

    async def both(self, act: Callable[[Client], Coroutine[Any, Any, object]]) -> None:
        """Do the same in both clusters."""
        await gathered([act(self.theirs), act(self.ours)])

    async def create(self, *objects: JsonObject) -> None:
        """Create objects, in order."""
        for obj in objects:
            await gathered([side.create(copy.deepcopy(obj)) for side in (self.theirs, self.ours)])

    async def patch(self, gvk: GroupVersionKind, key: Key, body: JsonObject) -> None:
        """Merge a patch into an object."""
        await self.both(lambda client: client.patch(gvk, key, body))

    async def delete(self, gvk: GroupVersionKind, key: Key) -> None:
        """Delete an object that has no finalizer."""
        await self.both(lambda client: client.delete(gvk, key))

    async def change(
        self,
        gvk: GroupVersionKind,
        key: Key,
        edit: Callable[[JsonObject], None],
        *,
        subresource: str = "",
        may_be_refused: bool = False,
    ) -> None:
        """Edit the live object in both clusters, where resource managers may write it, too.

        Args:
            may_be_refused: whether it stays as it is if the API server calls the new one invalid.
        """

        async def act(client: Client) -> None:
            while True:
                live = await client.get(gvk, key)
                edit(live)
                try:
                    await client.update(live, subresource=subresource)
                except Conflict:
                    continue
                except Invalid:
                    if not may_be_refused:
                        raise
                return

        await self.both(act)

    async def until_equal(
        self,
        left: Callable[[Client], Awaitable[Mapping[str, T]]],
        expected: Callable[[Client], Awaitable[Mapping[str, T]]],
        context: Callable[[str], Awaitable[object]],
        nudge: Callable[[Collection[str]], Awaitable[None]] | None = None,
    ) -> None:
        """Wait until both processes are done, and what they left behind is equal.

        Args:
            left: what a process leaves behind, by name.
            expected: what Pergola leaves behind when it is done, according to its rules. The two
                processes may be equal before they noticed the last writes.
            context: what a failure tells about a name.
            nudge: gives the original another event about what differs, in case it missed one.
        """
        await _until("Pergola follows its rules", lambda: left(self.ours), expected, self.ours)
        differing = await _differing(lambda: left(self.theirs), lambda: left(self.ours), nudge)
        lines = [f"\n  {name}{it}\n    {await context(name)}" for name, it in differing.items()]
        text = "".join(lines)
        assert not differing, f"the original differs from Pergola:{text}"


@asynccontextmanager
async def beside_original(
    controllers: JsonObject, prepare: Callable[[Client], Awaitable[None]]
) -> AsyncGenerator[Sides]:
    """Run both resource managers while the block lasts.

    Args:
        controllers: their configuration.
        prepare: is called with an administrator's client of each cluster before they start.
    """
    async with AsyncExitStack() as stack:
        peer, own = stack.enter_context(original()), installed()
        clients = []
        for program in (peer, own):
            sandbox = stack.enter_context(private(API_ONLY))
            client = await stack.enter_async_context(Client.connect(load(sandbox.kubeconfig)))
            await install_crds(client)
            await prepare(client)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            settings = {**program.settings, "controllers": controllers}
            started = Program(program.command, settings, program.limits)
            stack.enter_context(resource_manager(started, sandbox.kubeconfig, folder))
            clients.append(client)
        yield Sides(*clients)


async def _until(
    what: str,
    found: Callable[[], Awaitable[Mapping[str, T]]],
    expected: Callable[[Client], Awaitable[Mapping[str, T]]],
    client: Client,
) -> None:
    differing = await _differing(lambda: expected(client), found)
    text = "".join(f"\n  {name}{each}" for name, each in differing.items())
    assert not differing, f"{what}, but not here (theirs are the rules):{text}"


async def _differing(
    theirs: Callable[[], Awaitable[Mapping[str, Any]]],
    ours: Callable[[], Awaitable[Mapping[str, Any]]],
    nudge: Callable[[Collection[str]], Awaitable[None]] | None = None,
) -> dict[str, Difference]:
    """Return what differs still after a while; nothing once both are equal."""
    clock = asyncio.get_running_loop()
    end, next_nudge = clock.time() + PATIENCE, clock.time() + _BEFORE_A_NUDGE
    while True:
        one, other = await theirs(), await ours()
        differing = {
            name: Difference(one.get(name), other.get(name))
            for name in sorted(one.keys() | other.keys())
            if one.get(name) != other.get(name)
        }
        if not differing or clock.time() > end:
            return differing
        if nudge is not None and clock.time() > next_nudge:
            await nudge(differing.keys())
            next_nudge = clock.time() + _BEFORE_A_NUDGE
        await asyncio.sleep(_PAUSE)
