"""What can go wrong in a flow.

FlowError                   root: every failure of this room
├── GraphError              the graph is wrong, which only its author can repair
│   ├── DuplicateTask       two tasks have one name
│   ├── UnknownDependency   a task comes after something that is not in the graph
│   └── Cycle               tasks wait for each other
├── TaskFailed              one task failed for good
├── StateNotSaved           what was created could not be remembered
└── FlowFailed              everything that went wrong in one run
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pergola.flow.outcome import Result

FAILED_TO: Final = 'failed to "{task}": {cause}'
"""The sentence about a failed task whose name says what it does: `ensure VPC`."""
TASK_FAILED: Final = 'task "{task}" failed: {cause}'
"""The sentence about a failed task whose name says what happens: `Deploying etcd`."""


class FlowError(Exception):
    """Root of all failures of this room."""


class GraphError(FlowError):
    """A graph is wrong in itself."""


class DuplicateTask(GraphError):
    """Two tasks of a graph have the same name."""


class UnknownDependency(GraphError):
    """A task comes after something that is not in its graph."""


class Cycle(GraphError):
    """Tasks wait for each other, so that none of them can start.

    Attributes:
        tasks: their names; each comes after the next one, and the last one after the first.
    """

    def __init__(self, text: str, tasks: Sequence[str]) -> None:
        self.tasks = tuple(tasks)
        super().__init__(text)


class TaskFailed(FlowError):
    """One task failed for good.

    Attributes:
        task: its name.
        reason: what went wrong, without the task's name.
        cause: the last error, which is `__cause__` too; None if the task only took too long.
        codes: what the error was classified as.
        after: seconds after which the other side wants to be asked again; None if it did not say.
        attempts: how often the task was tried.
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
    """The state of a flow could not be written, so that it would be forgotten by a restart.

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
    """Everything that went wrong in one run, in one sentence for each.

    Attributes:
        result: how each task ended, also those that succeeded.
        failures: the tasks that failed, in the order of the graph.
        unsaved: why the state is not saved; None if it is.
        codes: of all failures, each once, in the order of the graph.
        after: seconds after which to try again, if all failures agree that it helps to come back
            then; None asks for the usual backoff.
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


def sentence_of(error: Exception) -> str:
    """What an error says; for one that nobody wrote a sentence for, its type too.

    A group of errors says what each of them says.
    """
    return "; ".join(dict.fromkeys(_text(leaf) for leaf in leaves(error)))


def leaves(error: Exception) -> list[Exception]:
    """The errors in a group of errors, at any depth; else the error itself."""
    if isinstance(error, ExceptionGroup):
        return [leaf for part in error.exceptions for leaf in leaves(part)]
    return [error]


def is_unexpected(error: Exception) -> bool:
    """Whether an error comes from the language itself: probably a bug, with a stack to look at."""
    return any(type(leaf).__module__ == "builtins" for leaf in leaves(error))


def _text(error: Exception) -> str:
    text = str(error).strip()
    if type(error).__module__ != "builtins" and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _agreed(failures: Iterable[TaskFailed]) -> float | None:
    asked = [failure.after for failure in failures]
    known = [seconds for seconds in asked if seconds is not None]
    return max(known) if known and len(known) == len(asked) else None
