"""Workers that take keys from a queue and reconcile them, one key never twice at once.

Watches trigger a controller (`pergola.runtime.controlling.watches`). Its one function is
`reconcile(key)`, which returns when to come back, and raises for what is unexpected or must be
retried with backoff.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pergola import tracing
from pergola.kube.errors import Conflict, KubeError, is_outage
from pergola.runtime.controlling.queue import LAST_RETRY_SECONDS, Queue
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup, is_being_cancelled

K = TypeVar("K")
log = get_logger("controller")


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until something happens."""


@dataclass(frozen=True, slots=True)
class Again:
    """Come back in `seconds`, or earlier if something happens."""

    seconds: float


Outcome = Done | Again
DONE: Final = Done()

OUTAGE_RETRY_SECONDS: Final = 10.0
"""The longest backoff while an API server is away: it says nothing about the key."""
PATIENCE_SECONDS: Final = 20.0
"""The backoff from which a missing dependency is logged as an error."""


class ReconcileError(Exception):
    """A reconciliation failed and has reported it already: retry with backoff."""


class DependencyMissing(ReconcileError):
    """What others create, such as a namespace or a kind, does not exist yet.

    While the backoff is short, this is the ordinary course of things, and logged as such.
    """


class MustStop(Exception):
    """The process must not go on: this ends the controllers, and is never retried."""


def raise_if_must_stop(error: Exception) -> None:
    """Raise what must stop the process, if an error is that or a group that contains it."""
    if isinstance(error, MustStop):
        raise error
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            raise_if_must_stop(each)


class Workers(Generic[K]):
    """Run `reconcile` for the keys of a queue.

    Args:
        name: as in the metrics and logs.
        workers: how many keys run at once.
        deadline: seconds that one run may take; None for no limit.
        last_retry: seconds; the backoff of a key that fails grows no longer than that.
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
        """Work until cancelled, which can happen at any await of a run."""
        async with TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}/{number}")

    async def _work(self) -> None:
        while not is_being_cancelled():  # a reconciler may handle a cancellation away
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
        except (
            Exception
        ) as error:  # whatever it is, the key is retried, unless the process must stop
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
        delay = self.queue.retry(key, OUTAGE_RETRY_SECONDS if is_outage(error) else None)
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
