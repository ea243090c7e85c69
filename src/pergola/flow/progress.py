"""Progress reports of flows, for `lastOperation` (spec 20 §9.3)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from pergola.flow.background import beside
from pergola.flow.graph import Graph
from pergola.flow.outcome import Ended, Outcome, Result
from pergola.flow.state import RUNNING_TASK
from pergola.runtime.failures import sentence_of
from pergola.runtime.logging import get_logger

log = get_logger("flow")

# Combines events in quick succession, such as the start of the next task.
_SETTLED_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Report:
    """The progress of a flow.

    Attributes:
        percent: the share of unskipped tasks that succeeded, rounded down.
        description: a sentence, or the names of the running tasks.
    """

    percent: int
    description: str


Reporter = Callable[[Report], Awaitable[object]]
"""Writes a report; a failure is logged, and the next report makes up for it."""


class Progress:
    """Reports on one run of a graph: the first at once, then at most one per `interval`.

    The last one is sent when the flow stops. Identical reports are not repeated.

    Args:
        interval: the interval in seconds.
        span: the percentages at the start and the end of the flow, so that several flows can share
            one status, or work can remain after them.
        closing_seconds: the time limit of the last report.
        is_followed: whether the caller reports on subsequent work, so that a success needs no
            report.
    """

    def __init__(
        self,
        graph: Graph,
        report: Reporter,
        *,
        interval: float = 5.0,
        span: tuple[int, int] = (0, 100),
        closing_seconds: float = 10.0,
        is_followed: bool = False,
    ) -> None:
        self._flow = graph.name
        self._tasks = len(graph)
        self._skipped = {task.name for task in graph if isinstance(task.skip, str) and task.skip}
        self._done = 0
        self._running: dict[str, dict[str, str]] = {}
        self._failed: list[str] = []
        self._report = report
        self._interval = interval
        self._span = span
        self._closing_seconds = closing_seconds
        self._is_followed = is_followed
        self._told: Report | None = None
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()

    @property
    def now(self) -> Report:
        """The current progress of the flow."""
        low, high = self._span
        total = self._tasks - len(self._skipped)
        percent = low + (high - low) * self._done // total if total else high
        return Report(percent, self._description(total))

    def started(self, task: str) -> None:
        """Record that a task runs."""
        self._running[task] = {}
        self._changed.set()

    def note(self, subject: str, problem: str) -> None:
        """Record what the calling task waits for; reports include it.

        Args:
            subject: such as `Deployment garden/gardener-apiserver`.
            problem: why it is not ready; empty once it is.
        """
        waits = self._running.get(RUNNING_TASK.get() or "")
        if waits is None or waits.get(subject, "") == problem:
            return
        waits[subject] = problem
        if not problem:
            del waits[subject]
        self._changed.set()

    def ended(self, task: str, ended: Ended) -> None:
        """Record that a task ended or was skipped."""
        self._running.pop(task, None)
        if ended.outcome is Outcome.DONE:
            self._done += 1
        elif ended.outcome is Outcome.SKIPPED:
            self._skipped.add(task)
        else:
            self._failed.append(task)
        self._changed.set()

    def finished(self, result: Result) -> None:
        """Do nothing: the last report was already sent."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Report while the block runs, and once more when it ends, for whatever reason."""
        self._changed.set()
        async with beside(self._run(), stop=self._stop, limit=self._closing_seconds):
            yield

    @property
    def _has_succeeded(self) -> bool:
        return self._done == self._tasks - len(self._skipped)

    def _description(self, total: int) -> str:
        if self._has_succeeded:
            return f"{self._flow} finished"
        if self._stopped.is_set() and self._failed:
            return f"{self._flow} failed: {', '.join(self._failed)}"
        if not self._done:
            return f"Starting {self._flow}"
        if self._running:
            return ", ".join(_noted(task, waits) for task, waits in self._running.items())
        # Between two tasks, there is nothing new to report.
        return self._told.description if self._told else f"Starting {self._flow}"

    def _stop(self) -> None:
        self._stopped.set()
        self._changed.set()

    async def _run(self) -> None:
        while not self._stopped.is_set():
            await self._changed.wait()
            if self._told:
                await self._pause(_SETTLED_SECONDS)
            self._changed.clear()
            if await self._publish():
                await self._pause(self._interval)
        await self._publish()

    async def _publish(self) -> bool:
        """Try to send a report; return False if there is nothing new."""
        if self._is_followed and self._has_succeeded:
            return False
        report = self.now
        if report == self._told:
            return False
        try:
            await self._report(report)
        except Exception as error:  # a failed report must not fail the flow
            log.warning("progress not reported", flow=self._flow, error=sentence_of(error))
            self._changed.set()
        else:
            self._told = report
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the flow stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return


def _noted(task: str, waits: Mapping[str, str]) -> str:
    """Return the name of a task, with the first object that it waits for."""
    for subject, problem in waits.items():
        others = f", and {len(waits) - 1} more" if len(waits) > 1 else ""
        return f"{task} ({subject}: {problem}{others})"
    return task
