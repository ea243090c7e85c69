"""The attempts at one task, until it succeeds or runs out of attempts or time."""

import asyncio
import random

from pergola.flow.errors import FlowError, TaskFailed, is_unexpected
from pergola.flow.graph import Task
from pergola.flow.retry import Diagnose, Diagnosis, diagnose_all
from pergola.runtime.failures import sentence_of
from pergola.runtime.logging import get_logger
from pergola.runtime.retrying import Failures, collect_failures
from pergola.runtime.task_group import is_being_cancelled

log = get_logger("flow")


class Attempts:
    """The attempts at one task.

    Attributes:
        count: the number of attempts, including the current one.
        last: the error of the last attempt that failed.
    """

    def __init__(
        self, task: Task, diagnose: Diagnose, sentence: str, source: random.Random
    ) -> None:
        self.count = 0
        self.last: Exception | None = None
        self._retried = Failures()
        self._task = task
        self._diagnose = diagnose
        self._sentence = sentence
        self._source = source

    async def run(self) -> None:
        """Run the task until it succeeds.

        Raises:
            TaskFailed: it failed, and will not be retried.
        """
        try:
            with collect_failures() as self._retried:
                async with asyncio.timeout(self._task.timeout) as limit:
                    await self._until_done(limit)
        except TimeoutError:  # the limit's: errors of an action are in a TaskFailed
            raise self.cut_short(f"it took longer than {self._task.timeout:g} s") from None

    def cut_short(self, why: str) -> TaskFailed:
        """Return the failure of a task that ran out of time.

        It includes the error that was being retried, or else that of the last attempt.
        """
        self.last = self._retried.last or self.last
        if self.last is None:
            return self._failure(why, self._means(TimeoutError(why)))
        return self._failure(f"{why}; before: {sentence_of(self.last)}", self._means(self.last))

    async def _until_done(self, limit: asyncio.Timeout) -> None:
        began = asyncio.get_running_loop().time()
        while (error := await self._once()) is not None:
            self.last = error
            diagnosis = self._means(error)
            wait = self._wait(diagnosis, limit)
            if wait is None:
                raise self._failure(self._told(error, began), diagnosis)
            self._log(error, wait)
            await asyncio.sleep(wait)

    async def _once(self) -> Exception | None:
        self.count += 1
        try:
            await self._task.action()
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            return FlowError("something that it started was cancelled")
        except Exception as error:  # any exception belongs to the task
            return error
        return None

    def _wait(self, diagnosis: Diagnosis, limit: asyncio.Timeout) -> float | None:
        """Return the seconds until the next attempt; None if there is none, or no time for it."""
        if not diagnosis.may_pass or is_being_cancelled():
            return None
        wait = self._task.retry.wait(self.count, diagnosis.after, self._source)
        end = limit.when()
        if wait is not None and end is not None:
            return wait if asyncio.get_running_loop().time() + wait < end else None
        return wait

    def _means(self, error: Exception) -> Diagnosis:
        try:
            return diagnose_all(self._diagnose, error)
        except Exception as bug:  # a wrong diagnosis must not affect other tasks
            log.error("error not classified", task=self._task.name, exc_info=bug)
            return Diagnosis(may_pass=False)

    def _told(self, error: Exception, began: float) -> str:
        if self.count == 1:
            return sentence_of(error)
        seconds = asyncio.get_running_loop().time() - began
        return f"{sentence_of(error)} ({self.count} attempts in {seconds:.0f} s)"

    def _failure(self, reason: str, diagnosis: Diagnosis) -> TaskFailed:
        return TaskFailed(
            self._task.name,
            reason,
            cause=self.last,
            codes=diagnosis.codes,
            after=diagnosis.after,
            attempts=self.count,
            sentence=self._sentence,
        )

    def _log(self, error: Exception, wait: float) -> None:
        log.info(
            "task failed, retrying",
            task=self._task.name,
            error=sentence_of(error),
            retry_seconds=round(wait, 3),
            exc_info=error if is_unexpected(error) else None,
        )
