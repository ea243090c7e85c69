"""Steps of the flows: each can plan its changes, and make them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from pergola.cloud.aws import AwsClient
from pergola.flow import ONCE, Graph, Retry, State
from pergola.flow.picture import Note
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.snapshot import Snapshot

TIMEOUT: Final = 90.0
LONG_TIMEOUT: Final = 180.0
CLEANUP_TIMEOUT: Final = 300.0


async def _store_nowhere() -> None:
    """Store nothing, for callers that do not keep the state."""


@dataclass(slots=True, kw_only=True)
class Work:
    """The shared inputs of the steps of one flow.

    Attributes:
        snapshot: AWS's descriptions from before the flow began; steps that change something update
            it, so that later steps need not describe it again.
        state: resource ids, under the keys of spec 30 §1.3.
        before: the state when the run began, before any step wrote to it.
        warnings: for the user; they do not block.
        save: saves the state now, for facts that must be recorded before an action.
        poll_seconds: the time between two polls while AWS is creating or deleting something.
    """

    aws: AwsClient
    desired: Desired
    state: State
    snapshot: Snapshot
    warnings: list[str] = field(default_factory=list)
    save: Callable[[], Awaitable[None]] = _store_nowhere
    poll_seconds: float = 5.0
    before: State = field(init=False)

    def __post_init__(self) -> None:
        self.before = State(self.state.snapshot())


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One idempotent step.

    Attributes:
        plan: returns what `ensure` would do, judging by the snapshot and the state alone.
        ensure: makes the changes; writes nothing if nothing differs.
        skip: why there is nothing to do, if that is known before the flow begins.
    """

    name: str
    plan: Callable[[Work], Note]
    ensure: Callable[[Work], Awaitable[None]]
    after: tuple[str, ...] = ()
    skip: str | None = None
    timeout: float = TIMEOUT
    retry: Retry = ONCE


def graph_of(name: str, steps: list[Step], work: Work) -> Graph:
    """Return the steps as a graph that can be run and drawn."""
    graph = Graph(name)
    for step in steps:
        graph.add(
            step.name,
            _bound(step, work),
            after=step.after,
            skip=step.skip,
            timeout=step.timeout,
            retry=step.retry,
        )
    return graph


def _bound(step: Step, work: Work) -> Callable[[], Awaitable[None]]:
    return lambda: step.ensure(work)
