"""Properties of flows with any graph, any failures, and a kill at any point.

A world of named objects replaces a cloud. Every operation and every write of the state takes time,
and the process can be killed before or after it takes effect.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial

import looptime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.flow.errors import FlowFailed
from pergola.flow.graph import Graph
from pergola.flow.outcome import Outcome
from pergola.flow.retry import ONCE, Retry
from pergola.flow.run import Settings, run
from pergola.flow.saving import Saver
from pergola.flow.state import State

Edges = dict[str, list[str]]
Act = Callable[[], Coroutine[None, None, None]]


class CloudError(Exception):
    """An operation failed."""


def virtually(work: Coroutine[None, None, None]) -> None:
    """Run in virtual time."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(start=0)) as runner:
        runner.run(work)


@st.composite
def edges(draw: st.DrawFn) -> Edges:
    """Draw an acyclic graph of one to eight tasks, not in the order of their dependencies."""
    names = "abcdefgh"[: draw(st.integers(1, 8))]
    found = {
        name: draw(st.lists(st.sampled_from(names[:number]), unique=True)) if number else []
        for number, name in enumerate(names)
    }
    order = draw(st.permutations(names))
    return {name: found[name] for name in order}


def ancestors(edges: Edges, name: str) -> set[str]:
    return set(edges[name]).union(*(ancestors(edges, each) for each in edges[name]))


@dataclass
class World:
    """The world outside the process, which outlives it.

    Attributes:
        latency: seconds of each operation, repeated.
        failing: operations that fail, by their number.
        last: the number of the half operation after which the process is killed; 0 for none.
    """

    edges: Edges
    latency: list[int]
    failing: set[int] = field(default_factory=set)
    last: int = 0
    objects: Counter[str] = field(default_factory=Counter)
    stored: dict[str, str] = field(default_factory=dict)
    operations: int = 0
    halves: int = 0
    is_dead: asyncio.Event = field(default_factory=asyncio.Event)
    wrong: list[str] = field(default_factory=list)

    async def operation(self) -> None:
        """Let time pass, and then fail or take effect."""
        self.operations += 1
        number = self.operations
        await asyncio.sleep(self.latency[number % len(self.latency)])
        await self.half()
        if number in self.failing:
            raise CloudError(f"operation {number}")

    async def half(self) -> None:
        """Perform half of an operation; the process may be killed here."""
        self.halves += 1
        if self.halves == self.last:
            self.is_dead.set()
        if self.is_dead.is_set():
            await asyncio.Event().wait()

    async def find(self, name: str) -> bool:
        await self.operation()
        return self.objects[name] > 0

    async def create(self, name: str) -> None:
        await self.operation()
        if missing := [each for each in self.edges[name] if each not in self.stored]:
            self.wrong.append(f"{name} is created while {missing} would be forgotten")
        self.objects[name] += 1
        await self.half()

    async def write(self, data: dict[str, str]) -> None:
        await self.operation()
        self.stored = data
        await self.half()

    def restarted(self, last: int) -> "World":
        """Return the same world, for the next process."""
        self.is_dead = asyncio.Event()
        self.last = self.halves + last if last else 0
        return self


def ensures(world: World, state: State, name: str) -> Act:
    """Return an idempotent task: uses the recorded object, else an existing one, else a new one."""

    async def action() -> None:
        if state.get(name):
            return
        if not await world.find(name):
            await world.create(name)
        state.created(name, f"{name}-id")
        await world.operation()  # such as waiting until it is ready

    return action


def flow_of(world: World, state: State, retry: Retry = ONCE) -> Graph:
    graph = Graph("property")
    for name, after in world.edges.items():
        graph.add(name, ensures(world, state, name), after=after, retry=retry)
    return graph


async def process(world: World, retry: Retry, parallel: int | None) -> bool:
    """Run one process; return whether its flow succeeded."""
    state = State(world.stored)
    saver = Saver(state, world.write, retry=Retry(attempts=3, jitter=0))
    graph = flow_of(world, state, retry)
    flow = asyncio.create_task(run(graph, saver=saver, settings=Settings(parallel=parallel)))
    death = asyncio.create_task(world.is_dead.wait())
    await asyncio.wait({flow, death}, return_when=asyncio.FIRST_COMPLETED)
    flow.cancel()
    death.cancel()
    await asyncio.wait({flow, death})
    return not flow.cancelled() and flow.exception() is None


@given(
    edges=edges(),
    latency=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    failing=st.sets(st.integers(1, 30)),
    kills=st.lists(st.integers(1, 40), max_size=4),
    attempts=st.integers(1, 3),
    parallel=st.none() | st.integers(1, 3),
)
def test_a_flow_killed_anywhere_and_resumed_creates_everything_once(
    edges: Edges,
    latency: list[int],
    failing: set[int],
    kills: list[int],
    attempts: int,
    parallel: int | None,
) -> None:
    async def lives() -> None:
        world = World(edges, latency, failing)
        retry = Retry(attempts=attempts, first_seconds=1, jitter=0)
        for last in kills:
            await process(world.restarted(last), retry, parallel)
        # Each restart uses up at least one failure, so the last run has none.
        for _ in range(len(failing) + 1):
            if await process(world.restarted(0), retry, parallel):
                break
        assert world.wrong == []
        assert world.objects == Counter(edges.keys())
        assert world.stored == {name: f"{name}-id" for name in edges}

    virtually(lives())


@given(edges=edges(), seconds=st.lists(st.integers(0, 9), min_size=8, max_size=8))
def test_a_flow_takes_as_long_as_its_critical_path_and_tasks_start_as_early_as_possible(
    edges: Edges, seconds: list[int]
) -> None:
    takes = dict(zip(sorted(edges), seconds, strict=False))
    graph = Graph("property")
    for name, after in edges.items():
        graph.add(name, partial(asyncio.sleep, takes[name]), after=after)

    async def work() -> None:
        result = await run(graph)
        ends = {name: each.started + takes[name] for name, each in result.tasks.items()}
        for name, after in edges.items():
            ready = max((ends[each] for each in after), default=0.0)
            assert abs(result.tasks[name].started - ready) < 0.01
        assert abs(result.seconds - graph.critical_path(takes).seconds) < 0.01

    virtually(work())


@given(edges=edges(), data=st.data())
def test_every_error_is_reported_and_only_dependent_tasks_do_not_run(
    edges: Edges, data: st.DataObject
) -> None:
    broken = data.draw(st.sets(st.sampled_from(sorted(edges))))
    skipped = data.draw(st.sets(st.sampled_from(sorted(edges)))) - broken
    seconds = data.draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))
    limit = data.draw(st.none() | st.integers(1, 3))
    called: Counter[str] = Counter()
    running: set[str] = set()
    most = 0

    def action(name: str, seconds: int) -> Act:
        async def act() -> None:
            nonlocal most
            called[name] += 1
            running.add(name)
            most = max(most, len(running))
            await asyncio.sleep(seconds)
            running.remove(name)
            if name in broken:
                raise CloudError(f"{name} is broken")

        return act

    graph = Graph("property")
    for (name, after), takes in zip(edges.items(), seconds, strict=False):
        skip = "off" if name in skipped else None
        graph.add(name, action(name, takes), after=after, skip=skip)
    unreachable = {name for name in edges if ancestors(edges, name) & broken}
    # A task fails only if it is reached.
    failing = broken - unreachable

    async def work() -> None:
        settings = Settings(parallel=limit)
        if failing:
            with pytest.raises(FlowFailed) as caught:
                await run(graph, settings=settings)
            result = caught.value.result
            sentences = {f'failed to "{name}": {name} is broken' for name in failing}
            assert set(str(caught.value).split("; ")) == sentences
        else:
            result = await run(graph, settings=settings)
        assert set(result.named(Outcome.NOT_STARTED)) == unreachable
        assert called == Counter(set(edges) - unreachable - skipped)
        assert limit is None or most <= limit

    virtually(work())
