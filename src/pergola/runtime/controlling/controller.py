"""Workers that take keys from a queue and reconcile them, each key in one worker at a time.

Watches trigger a controller (`pergola.runtime.controlling.watches`). Its only function is
`reconcile(key)`, which returns when to run again, and raises for failures to retry with backoff.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pergola import tracing
from pergola.kube.errors import Conflict, KubeError, is_outage, wait_asked_by
from pergola.runtime.controlling.queue import LAST_RETRY_SECONDS, Queue
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup, is_being_cancelled

K = TypeVar("K")
log = get_logger("controller")


@dataclass(frozen=True, slots=True)
class Done:
    """Reconciled: nothing to do until the next event."""


@dataclass(frozen=True, slots=True)
class Again:
    """Reconcile again after `seconds`, or earlier if an event triggers it."""

    seconds: float


Outcome = Done | Again
"""The result of a reconciliation: done until the next event, or to be repeated later."""
DONE: Final = Done()
"""Nothing is left to do until the next event."""

OUTAGE_RETRY_SECONDS: Final = 10.0
"""The maximum backoff while an API server is unavailable: an outage says nothing about the key."""
PATIENCE_SECONDS: Final = 20.0
"""The backoff from which a missing dependency is logged as an error."""


class ReconcileError(Exception):
    """A failed reconciliation that was reported already: retry with backoff."""


class DependencyMissing(ReconcileError):
    """Something that others create, such as a namespace or a kind, does not exist yet.

    This is normal while the backoff is short, and logged accordingly.
    """


class MustStop(Exception):
    """The process must end: this stops the controllers and is never retried."""


def raise_if_must_stop(error: Exception) -> None:
    """Raise the MustStop in an error: the error itself, or a member of a group."""
    if isinstance(error, MustStop):
        raise error
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            raise_if_must_stop(each)


class Workers(Generic[K]):
    """The workers that run `reconcile` for the keys of a queue.

    Args:
        name: the name in metrics and logs.
        workers: the number of keys to reconcile at once.
        deadline: the time limit of a run in seconds; None for no limit.
        last_retry: the maximum backoff of a failing key, in seconds.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Outcome]],
        *,
        workers: int,
        metrics: Metrics,
        deadline: float | None = None,
        last_retry: float = LAST_RETRY_SECONDS,
    ) -> None:
        self.name = name
        self.queue: Queue[K] = Queue(metrics.queue(name), last_retry=last_retry)
        self._reconcile = reconcile
        self._workers = workers
        self._deadline = deadline
        self._metrics = metrics.controller(name)
        self._metrics.max_concurrent(workers)

    async def run(self) -> None:
        """Work until cancelled; a run may be cancelled at any await."""
        async with TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}/{number}")

    async def _work(self) -> None:
        while not is_being_cancelled():  # a reconciler may swallow a cancellation
            key = await self.queue.get()
            try:
                await self._run(key)
            finally:
                self.queue.done(key)

    async def _run(self, key: K) -> None:
        self.queue.cancel(key)
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._metrics.active_workers.inc()
        limit = asyncio.timeout(self._deadline)
        try:
            with tracing.reconciliation(self.name, key):
                async with limit:
                    outcome = await self._reconcile(key)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            cause = "something that the run awaited was cancelled"
            self._failed(key, ReconcileError(cause), overdue=False)
            self._metrics.observe("error", loop.time() - began)
        except (
            Exception
        ) as error:  # retry the key whatever the error is, unless the process must stop
            raise_if_must_stop(error)
            self._failed(key, error, overdue=limit.expired())
            self._metrics.observe("error", loop.time() - began)
        else:
            self.queue.forget(key)
            if isinstance(outcome, Again):
                self.queue.add_after(key, outcome.seconds)
            self._metrics.observe(
                "requeue_after" if isinstance(outcome, Again) else "success", loop.time() - began
            )
        finally:
            self._metrics.active_workers.dec()

    def _failed(self, key: K, error: Exception, *, overdue: bool) -> None:
        limit = OUTAGE_RETRY_SECONDS if is_outage(error) else None
        delay = self.queue.retry(key, limit, at_least=wait_asked_by(error))
        fields = {"controller": self.name, "object": str(key), "retry_seconds": round(delay, 3)}
        if isinstance(error, Conflict):
            log.debug("conflict", **fields, error=str(error))
        elif isinstance(error, DependencyMissing) and delay < PATIENCE_SECONDS:
            log.info("waiting for a dependency", **fields, reason=str(error))
        elif isinstance(error, ReconcileError | KubeError):
            log.error("reconcile failed", **fields, error=str(error))
        elif overdue and isinstance(error, TimeoutError):
            self._metrics.timed_out()
            log.error("reconcile took too long", **fields, deadline_seconds=self._deadline)
        else:
            log.error("reconcile failed", **fields, exc_info=error)
