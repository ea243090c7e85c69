"""Outcomes of tasks and flows."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """The outcome of a task."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """The flow's deadline passed while it ran."""
    NOT_STARTED = "not started"
    """A dependency did not succeed, or the flow stopped before."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of one task, with its times and attempts.

    Attributes:
        started: seconds between the start of the flow and its own; 0 if it did not start.
        seconds: its duration, including all attempts and the waits between them.
        attempts: the number of attempts.
        why: why it was skipped or failed.
    """

    outcome: Outcome
    started: float = 0.0
    seconds: float = 0.0
    attempts: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a run of a flow.

    Attributes:
        tasks: all tasks by name, in the order of the graph.
        seconds: the duration of the run.
    """

    flow: str
    tasks: Mapping[str, Ended]
    seconds: float

    @property
    def durations(self) -> dict[str, float]:
        """The duration of each task in seconds, for `Graph.critical_path`."""
        return {name: ended.seconds for name, ended in self.tasks.items()}

    def named(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the names of the tasks with this outcome, in the order of the graph."""
        return tuple(name for name, ended in self.tasks.items() if ended.outcome is outcome)


class Observer(Protocol):
    """An observer of a run's events; its methods must neither block nor raise."""

    def started(self, task: str) -> None:
        """Handle the start of the first attempt at a task."""
        ...

    def ended(self, task: str, ended: Ended) -> None:
        """Handle the end of a task, or of a skipped task, which never started."""
        ...

    def finished(self, result: Result) -> None:
        """Handle the end of the run, unless it was cancelled."""
        ...
