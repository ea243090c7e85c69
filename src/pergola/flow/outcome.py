"""How the tasks of a flow ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """How a task ended."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """The flow's deadline passed while it ran."""
    NOT_STARTED = "not started"
    """A dependency did not succeed, or the flow stopped before."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one task ended.

    Attributes:
        started: seconds from the flow's start to its own; 0 if it did not start.
        seconds: how long it took, with all attempts and the waits between them.
        attempts: how often it was tried.
        why: why it was skipped, or what went wrong.
    """

    outcome: Outcome
    started: float = 0.0
    seconds: float = 0.0
    attempts: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of a flow ended.

    Attributes:
        tasks: by name, in the order of the graph; every task is in it.
        seconds: how long the run took.
    """

    flow: str
    tasks: Mapping[str, Ended]
    seconds: float

    @property
    def durations(self) -> dict[str, float]:
        """The seconds that each task took, for `Graph.critical_path`."""
        return {name: ended.seconds for name, ended in self.tasks.items()}

    def named(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the names of the tasks with this outcome, in the order of the graph."""
        return tuple(name for name, ended in self.tasks.items() if ended.outcome is outcome)


class Observer(Protocol):
    """Receives the events of a run; its methods must neither block nor raise."""

    def started(self, task: str) -> None:
        """Called when the first attempt at a task starts."""
        ...

    def ended(self, task: str, ended: Ended) -> None:
        """Called when a task ends; also for skipped tasks, which never start."""
        ...

    def finished(self, result: Result) -> None:
        """Called when the run ends, unless it was cancelled."""
        ...
