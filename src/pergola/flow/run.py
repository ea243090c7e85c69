"""Running the tasks of a graph, each as soon as its dependencies are done, with retries."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import Final

from pergola import tracing
from pergola.flow.attempts import Attempts
from pergola.flow.errors import (
    FAILED_TO,
    FlowFailed,
    StateNotSaved,
    TaskFailed,
    is_unexpected,
)
from pergola.flow.graph import Graph, Task
from pergola.flow.outcome import Ended, Observer, Outcome, Result
from pergola.flow.progress import Progress
from pergola.flow.retry import Diagnose, may_pass
from pergola.flow.saving import Saver
from pergola.flow.state import RUNNING_TASK
from pergola.runtime.clock import monotonic
from pergola.runtime.failures import sentence_of
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup, is_being_cancelled

log = get_logger("flow")

_NOT_STARTED: Final = Ended(Outcome.NOT_STARTED)
_GOES_ON: Final = frozenset({Outcome.DONE, Outcome.SKIPPED})


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of a run.

    Attributes:
        parallel: the maximum number of concurrent tasks, including those that wait for a retry;
            None for no limit.
        deadline: the time limit in seconds for the whole run, after which running tasks are
            cancelled and reported.
        diagnose: classifies the errors of tasks.
        sentence: the message about a failed task, with `{task}` and `{cause}`.
    """

    parallel: int | None = None
    deadline: float | None = None
    diagnose: Diagnose = may_pass
    sentence: str = FAILED_TO


async def run(
    graph: Graph,
    *,
    saver: Saver | None = None,
    progress: Progress | None = None,
    observers: Sequence[Observer] = (),
    settings: Settings | None = None,
    source: random.Random | None = None,
) -> Result:
    """Run each task as soon as its dependencies are done (spec 30 §3.1).

    When a task fails, the tasks that depend on it do not start, but all others do. Tasks that
    depend on one that created something start once the state is saved. Cancelling the run cancels
    the running tasks and saves the state.

    Args:
        saver: writes the state that the tasks share; None without one.
        progress: reports the progress of the run.
        source: the source of jitter between attempts.

    Raises:
        GraphError: the graph is invalid; nothing was started.
        FlowFailed: tasks failed, the state is not saved, or the deadline passed.
    """
    observers = [progress, *observers] if progress else observers
    execution = _Execution(
        graph,
        saver,
        observers,
        settings or Settings(),
        source or random.Random(),  # noqa: S311 - spreads retries, guards nothing
    )
    async with AsyncExitStack() as stack:
        if progress:
            await stack.enter_async_context(progress.running())
        if saver:
            await stack.enter_async_context(saver.running())
        await execution.run()
    return execution.conclude()


class _Execution:
    """One run of one graph."""

    def __init__(
        self,
        graph: Graph,
        saver: Saver | None,
        observers: Sequence[Observer],
        settings: Settings,
        source: random.Random,
    ) -> None:
        self._graph = graph
        self._order = graph.order()
        self._sorter = graph.sorter()
        self._dependants = graph.dependants()
        self._saver = saver
        self._observers = observers
        self._settings = settings
        self._source = source
        self._slots = asyncio.Semaphore(settings.parallel) if settings.parallel else nullcontext()
        self._ended: dict[str, Ended] = {}
        self._failures: dict[str, TaskFailed] = {}
        self._unsaved: StateNotSaved | None = None
        self._is_overdue = False
        self._began = 0.0
        self._seconds = 0.0

    async def run(self) -> None:
        """Run everything that can run; return in any case, unless cancelled."""
        self._began = monotonic()
        limit = asyncio.timeout(self._settings.deadline)
        try:
            async with limit, TaskGroup() as self._group:
                self._start_ready()
        except TimeoutError:
            self._is_overdue = True
        finally:
            self._seconds = monotonic() - self._began

    def conclude(self) -> Result:
        """Return the result, once the state is saved.

        Raises:
            FlowFailed: the run did not succeed.
        """
        ended = {each.name: self._ended.get(each.name, _NOT_STARTED) for each in self._order}
        result = Result(self._graph.name, ended, self._seconds)
        for observer in self._observers:
            observer.finished(result)
        failures = [
            self._failures[each.name] for each in self._order if each.name in self._failures
        ]
        unsaved = self._unsaved or (self._saver.unsaved if self._saver else None)
        is_explained = bool(result.named(Outcome.INTERRUPTED))
        overdue = self._overdue if self._is_overdue and not is_explained else None
        if failures or unsaved or overdue:
            raise FlowFailed(result, failures, unsaved, overdue)
        return result

    @property
    def _overdue(self) -> str:
        return f"the flow took longer than {self._settings.deadline:g} s"

    def _start_ready(self) -> None:
        for name in self._sorter.get_ready():
            self._group.create_task(
                self._step(self._graph[name]), name=f"{self._graph.name}/{name}"
            )

    async def _step(self, task: Task) -> None:
        RUNNING_TASK.set(task.name)
        ended = await self._perform(task)
        self._end(task, ended)
        is_last = not self._dependants[task.name]
        if is_last or ended.outcome not in _GOES_ON or not await self._is_durable(task):
            return
        if not is_being_cancelled():  # an action may have succeeded in spite of it
            self._sorter.done(task.name)
            self._start_ready()

    async def _perform(self, task: Task) -> Ended:
        try:
            reason = task.why_skipped()
        except Exception as error:  # any exception belongs to the task
            return self._failed(
                TaskFailed(
                    task.name,
                    sentence_of(error),
                    cause=error,
                    attempts=0,
                    sentence=self._settings.sentence,
                ),
                monotonic(),
            )
        if reason:
            return Ended(Outcome.SKIPPED, started=monotonic() - self._began, why=reason)
        async with self._slots:
            with tracing.task(self._graph.name, task.name):
                return await self._act(task)

    async def _act(self, task: Task) -> Ended:
        for observer in self._observers:
            observer.started(task.name)
        began = monotonic()
        settings = self._settings
        attempts = Attempts(task, settings.diagnose, settings.sentence, self._source)
        try:
            await attempts.run()
        except TaskFailed as failure:
            return self._failed(failure, began)
        except asyncio.CancelledError:
            self._interrupted(task, attempts, began)
            raise
        return Ended(Outcome.DONE, began - self._began, monotonic() - began, attempts.count)

    def _failed(self, failure: TaskFailed, began: float) -> Ended:
        self._failures[failure.task] = failure
        cause = failure.cause
        log.error(
            "task failed",
            flow=self._graph.name,
            task=failure.task,
            error=failure.reason,
            codes=list(failure.codes),
            exc_info=cause if cause and is_unexpected(cause) else None,
        )
        return Ended(
            Outcome.FAILED,
            began - self._began,
            monotonic() - began,
            failure.attempts,
            failure.reason,
        )

    def _interrupted(self, task: Task, attempts: Attempts, began: float) -> None:
        failure = attempts.cut_short(
            self._overdue if self._settings.deadline is not None else "the flow was cancelled"
        )
        self._failures[task.name] = failure
        self._end(
            task,
            Ended(
                Outcome.INTERRUPTED,
                began - self._began,
                monotonic() - began,
                attempts.count,
                failure.reason,
            ),
        )

    def _end(self, task: Task, ended: Ended) -> None:
        self._ended[task.name] = ended
        outcome, seconds = str(ended.outcome), round(ended.seconds, 3)
        log.debug(
            "task ended", flow=self._graph.name, task=task.name, outcome=outcome, seconds=seconds
        )
        for observer in self._observers:
            observer.ended(task.name, ended)

    async def _is_durable(self, task: Task) -> bool:
        """Wait until everything that a task created is saved; return False if that fails."""
        try:
            if self._saver:
                await self._saver.durable(task.name)
        except StateNotSaved as error:
            self._unsaved = error
            return False
        return True
