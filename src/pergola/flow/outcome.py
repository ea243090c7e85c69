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
    """Something that it comes after did not succeed, or the flow stopped before."""


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
        """Seconds that each task took, as `Graph.critical_path` wants them."""
        return {name: ended.seconds for name, ended in self.tasks.items()}

    def named(self, outcome: Outcome) -> tuple[str, ...]:
        """The names of the tasks that ended so, in the order of the graph."""
        return tuple(name for name, ended in self.tasks.items() if ended.outcome is outcome)


class Observer(Protocol):
    """Told what happens in a run, at once; it must neither wait nor raise. Tasks go by name."""

    def started(self, task: str) -> None:
        """A task's action is called now, for the first time."""
        ...

    def ended(self, task: str, ended: Ended) -> None:
        """A task ended; also told for tasks that were skipped, which were not started."""
        ...

    def finished(self, result: Result) -> None:
        """The run is over and was not cancelled from outside."""
        ...
