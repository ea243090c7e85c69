"""Steps of the flows: each observes, decides and acts, or only decides for a plan."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from pergola.cloud.aws import AwsClient
from pergola.extension_api.errors import ExtensionError
from pergola.flow import ONCE, Graph, Retry, State
from pergola.flow.picture import Fate
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.decision import Decision
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


async def nothing(work: Work) -> None:
    """Observe nothing, for steps that can trust the snapshot."""
    del work


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One idempotent step.

    Attributes:
        decide: Returns what to do, judging by the snapshot and the state alone; changes neither.
        observe: Completes the snapshot before a decision of a run: describes what the state names
            but the snapshot lacks, and waits for what is not ready.
        skip: Why there is nothing to do, if that is known before the flow begins.
    """

    name: str
    decide: Callable[[Work], Decision]
    observe: Callable[[Work], Awaitable[None]] = nothing
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
    return lambda: _run(step, work)


async def _run(step: Step, work: Work) -> None:
    """Carry out a decision, then complete what was created, which is never created again.

    Raises:
        ExtensionError: The created resource is not recognized.
    """
    decision = await _observe_and_decide(step, work)
    await _carry_out(decision, work)
    if decision.note.fate is Fate.CREATE:
        rest = await _observe_and_decide(step, work)
        if rest.note.fate is Fate.CREATE:
            raise ExtensionError(
                f"AWS does not describe what was created as requested ({rest.note.why}); it will "
                "be checked again at the next attempt"
            )
        await _carry_out(rest, work)


async def _observe_and_decide(step: Step, work: Work) -> Decision:
    await step.observe(work)
    return step.decide(work)


async def _carry_out(decision: Decision, work: Work) -> None:
    work.warnings += [each for each in decision.warnings if each not in work.warnings]
    record(work, decision)
    for call in decision.calls:
        await call()
    for key in decision.forget:
        work.state.forget(key)


def record(work: Work, decision: Decision) -> None:
    """Put into the state what is known before the calls of a decision."""
    for key, value in decision.record.items():
        work.state.created(key, value)
