"""Errors of flows.

FlowError                   root: every failure of this room
├── GraphError              the graph is invalid: a bug
│   ├── DuplicateTask       two tasks have the same name
│   ├── UnknownDependency   a task depends on one that is not in the graph
│   └── Cycle               tasks wait for each other
├── TaskFailed              one task failed for good
├── StateNotSaved           the state could not be written
└── FlowFailed              everything that went wrong in one run
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pergola.flow.outcome import Result
from pergola.runtime.failures import leaves, sentence_of

FAILED_TO: Final = 'failed to "{task}": {cause}'
"""The message about a failed task with an imperative name: `ensure VPC`."""
TASK_FAILED: Final = 'task "{task}" failed: {cause}'
"""The message about a failed task with a descriptive name: `Deploying etcd`."""


class FlowError(Exception):
    """Base class of all failures of this room."""


class GraphError(FlowError):
    """A graph is invalid."""


class DuplicateTask(GraphError):
    """Two tasks of a graph have the same name."""


class UnknownDependency(GraphError):
    """A task depends on one that is not in its graph."""


class Cycle(GraphError):
    """Tasks wait for each other, so none of them can start.

    Attributes:
        tasks: their names; each depends on the next one, and the last one on the first.
    """

    def __init__(self, text: str, tasks: Sequence[str]) -> None:
        self.tasks = tuple(tasks)
        super().__init__(text)


class TaskFailed(FlowError):
    """One task failed permanently.

    Attributes:
        task: its name.
        reason: the error, without the task's name.
        cause: the last error, which is also `__cause__`; None if the task only took too long.
        codes: the error codes of the cause.
        after: the seconds after which to retry, as requested by the other side; None if it did not.
        attempts: the number of attempts.
    """

    def __init__(
        self,
        task: str,
        reason: str,
        *,
        cause: Exception | None = None,
        codes: Sequence[str] = (),
        after: float | None = None,
        attempts: int = 1,
        sentence: str = FAILED_TO,
    ) -> None:
        self.task = task
        self.reason = reason
        self.cause = cause
        self.codes = tuple(codes)
        self.after = after
        self.attempts = attempts
        self.__cause__ = cause
        super().__init__(sentence.format(task=task, cause=reason))


class StateNotSaved(FlowError):
    """The state of a flow could not be written, so a restart would lose it.

    Attributes:
        cause: the last error.
    """

    def __init__(self, cause: Exception | None) -> None:
        self.cause = cause
        self.__cause__ = cause
        super().__init__(
            f"what the tasks created could not be saved: {sentence_of(cause)}"
            if cause
            else "what the tasks created could not be saved in time"
        )


class FlowFailed(FlowError):
    """All failures of one run, one sentence each.

    Attributes:
        result: the outcome of each task, including successful ones.
        failures: the failed tasks, in the order of the graph.
        unsaved: why the state is not saved; None if it is.
        codes: the distinct codes of all failures, in the order of the graph.
        after: the seconds after which to retry, if all failures specify a time; None for the usual
            backoff.
    """

    def __init__(
        self,
        result: Result,
        failures: Sequence[TaskFailed],
        unsaved: StateNotSaved | None = None,
        overdue: str | None = None,
    ) -> None:
        self.result = result
        self.failures = tuple(failures)
        self.unsaved = unsaved
        self.codes = tuple(dict.fromkeys(code for failure in failures for code in failure.codes))
        self.after = None if unsaved or overdue else _agreed(failures)
        sentences = [str(failure) for failure in failures]
        sentences += [str(unsaved)] if unsaved else []
        sentences += [overdue] if overdue else []
        super().__init__("; ".join(sentences))


def is_unexpected(error: Exception) -> bool:
    """Return whether an error is a built-in one: it is probably a bug, so log its traceback."""
    return any(type(leaf).__module__ == "builtins" for leaf in leaves(error))


def _agreed(failures: Iterable[TaskFailed]) -> float | None:
    asked = [failure.after for failure in failures]
    known = [seconds for seconds in asked if seconds is not None]
    return max(known) if known and len(known) == len(asked) else None
