"""Flows in AWS that are killed, disturbed and resumed, and their remains in the account.

    async with MortalAws(server) as aws, aws.client("eu-west-1", retry=QUICK) as client:
        cluster = Flows(aws, client, wanted)
        await cluster.run(creation)
        there = await cluster.picture()
        ...
        if await cluster.is_killed_after(17, creation):
            await cluster.run(creation)
        assert await cluster.picture() == there

A kill is hard: the write is carried out, its answer never arrives, and nothing more is saved.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.flow import FlowFailed, Saver, State, run
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import name_zones
from pergola.providers.aws.observe import observe
from pergola.providers.aws.resources.step import CLEANUP_TIMEOUT, Step, Work, graph_of
from pergola.providers.aws.state import is_empty
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import everything
from tests.support.aws.picture import picture

Build = Callable[[Desired, State], list[Step]]
"""The steps of a flow, such as `creation` and `deletion`."""
POLL_SECONDS: Final = 0.002
_REFUSED: Final = 300
_ARRIVAL: Final = "/arrival"


class MortalAws(CorrectedAws):
    """An AWS that counts writes, so that a test can kill a flow at each of them.

    Reads and refused calls change nothing: a flow that dies there is no worse off than at the
    next write.
    """

    def __init__(self, server: str, *, reads: int = 1) -> None:
        super().__init__(server, reads=reads)
        self.count = 0
        self._running = 0
        self._still = asyncio.Event()
        self._at: tuple[int, Callable[[], None]] | None = None
        self._armed: tuple[int, Callable[[], None]] | None = None
        self._anticipated: set[str] = set()

    def arm(self, writes: int, then: Callable[[], None]) -> None:
        """Call `then` after a number of writes, before the last of them is answered.

        Counting starts when the next flow has observed AWS and begins to act.
        """
        self._armed = (writes, then)

    def begin(self) -> None:
        """Start counting: a flow begins to act."""
        self.count = 0
        self._at, self._armed = self._armed, None

    def anticipate(self, *operations: str) -> None:
        """Carry out calls of these operations twice, as if another client had just made them."""
        self._anticipated.update(operations)

    def heal(self) -> None:
        """End all injected failures."""
        super().heal()
        self._anticipated.clear()
        self._at = self._armed = None

    async def quiet(self) -> None:
        """Wait until all calls are carried out, including those whose answers are not awaited.

        The server may not have read the last requests yet. It accepts a new connection after all
        others, so that the request on it arrives last.
        """
        async with self._http.get(f"{self.url}{_ARRIVAL}", headers={"Connection": "close"}):
            pass
        while self._running:
            self._still.clear()
            await self._still.wait()

    async def _pass(self, request: web.Request) -> web.Response:
        if request.path == _ARRIVAL:
            return web.Response()
        self._running += 1
        try:
            answer = await super()._pass(request)
        finally:
            self._running -= 1
            self._still.set()
        return answer

    async def _corrected(self, request: web.Request, call: Call, body: bytes) -> web.Response:
        if call.operation in self._anticipated:
            await super()._corrected(request, call, body)
        answer = await super()._corrected(request, call, body)
        if call.is_write and answer.status < _REFUSED:
            self.count += 1
            if self._at is not None and self.count == self._at[0]:
                self._at[1]()
        return answer


class Flows:
    """The flows of one cluster, one after the other.

    Attributes:
        wanted: the desired infrastructure; may be replaced between flows.
        saved: the state that was written last.
        warnings: the warnings of the last flow.
        longest: the time limit of steps in seconds, unless theirs is shorter.
        interval: seconds for which changes that are not urgent may remain unsaved; a flow that is
            killed before that has only saved what was created.
    """

    def __init__(self, aws: MortalAws, client: AwsClient, desired: Desired) -> None:
        self.aws = aws
        self.client = client
        self.desired = desired
        self.saved: dict[str, str] = {}
        self.warnings: list[str] = []
        self.longest = CLEANUP_TIMEOUT
        self.interval = 1.0
        self._is_dead = False
        self._dies_after: int | None = None
        self._before: frozenset[str] = frozenset()

    async def remember(self) -> None:
        """Exclude the current contents of the account from pictures, as not the cluster's."""
        self._before = frozenset(await everything(self.client))

    async def run(self, build: Build) -> None:
        """Observe AWS, then run a flow.

        Raises:
            FlowFailed: steps failed; `saved` has the resources that were created.
        """
        self._is_dead = False
        state = State(self.saved)
        steps = [
            replace(step, timeout=min(step.timeout, self.longest))
            for step in build(self.desired, state)
        ]
        # Like the actuator, save a state before anything is created.
        await self._save(state.snapshot())
        work = Work(
            aws=self.client,
            desired=self.desired,
            state=state,
            snapshot=await observe(self.client, self.desired, state),
            poll_seconds=POLL_SECONDS,
        )
        self.warnings = work.warnings
        self._begin()
        saver = Saver(state, self._save, interval=self.interval)
        work.save = saver.flush
        await run(graph_of("flow", steps, work), saver=saver)

    async def is_killed_after(self, writes: int, build: Build) -> bool:
        """Kill a flow at the end of its n-th write; return False if it ended before.

        Raises:
            FlowFailed: the flow failed before.
        """
        self._dies_after = writes
        flow = asyncio.create_task(self.run(build))
        try:
            await asyncio.wait([flow])
        finally:
            self._dies_after = None
            self.aws.heal()
            await self.aws.quiet()
        if not self._is_dead:
            flow.result()
        return self._is_dead

    async def run_until_done(self, build: Build, *, runs: int = 40) -> int:
        """Run a flow until it succeeds, as a controller does; return how often it failed.

        Raises:
            FlowFailed: the flow failed in all runs.
        """
        for failed in range(runs - 1):
            try:
                await self.run(build)
            except FlowFailed:
                continue
            return failed
        await self.run(build)
        return runs - 1

    async def picture(self) -> list[str]:
        """Return the contents of the account and the state, without details of this run."""
        return await picture(self.client, self.saved, self._before)

    async def lost(self) -> set[str]:
        """Return the contents of the account from before the cluster that have disappeared."""
        return set(self._before) - set(await everything(self.client))

    async def things(self) -> dict[str, JsonObject]:
        """Return the cluster's resources in the account, as `everything` describes them."""
        found = await everything(self.client)
        return {key: thing for key, thing in found.items() if key not in self._before}

    def _begin(self) -> None:
        flow = asyncio.current_task()
        if flow is not None and self._dies_after is not None:
            self.aws.arm(self._dies_after, lambda: self._kill(flow))
        self.aws.begin()

    def _kill(self, flow: "asyncio.Task[object]") -> None:
        self._is_dead = not flow.done()
        flow.cancel()

    async def _save(self, data: dict[str, str]) -> None:
        if not self._is_dead:
            self.saved = data


def creation(desired: Desired, state: State) -> list[Step]:
    """Return the steps that create everything; first put the zones' names into an empty state."""
    if is_empty(state):
        name_zones(desired, state)
    return reconcile_steps(desired)


def deletion(desired: Desired, state: State) -> list[Step]:
    """Return the steps that remove everything; none if there is no state."""
    return [] if is_empty(state) else delete_steps(desired, state)
