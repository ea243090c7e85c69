"""The webhook workers of a process: started, restarted after crashes, and stopped."""

import asyncio
from collections import deque
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from pergola.admission.workers.process import WorkerProcess
from pergola.api.objects import JsonObject
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.options import StartError
from pergola.runtime.summed_metrics import Family, totals
from pergola.runtime.task_group import TaskGroup, gathered

log = get_logger("webhook-workers")

MOST_CRASHES: Final = 5
CRASHES_WITHIN: Final = 300.0
"""Period in seconds; a worker that crashes too often within it ends the process."""
_START_SECONDS: Final = 120.0
_JOIN_SECONDS: Final = 5.0
_FIRST_PAUSE: Final = 0.1


class WorkerError(StartError):
    """A worker cannot serve; the text names it and the reason."""


class _Restarts:
    """The metric of crashed workers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.total = Counter(
            "pergola_webhook_worker_restarts",
            "Webhook workers that crashed and were restarted",
            registry=registry,
        )


class WorkerPool:
    """The workers besides the process itself.

    Args:
        number: how many to run.
        module: the main module of a worker.
        metrics: of the process; those of the workers are added to them.
        most_crashes: the limit for one worker within `CRASHES_WITHIN`; one more ends the process.
    """

    def __init__(
        self, number: int, module: str, metrics: Metrics, *, most_crashes: int = MOST_CRASHES
    ) -> None:
        self._module = module
        self._most_crashes = most_crashes
        self._numbers = range(1, number + 1)
        self._task: JsonObject = {}
        self._workers: dict[int, WorkerProcess] = {}
        self._past: list[list[Family]] = []
        self._dismissed = False
        self._restarts = metrics.register(_Restarts)
        metrics.join(self._metrics)

    async def start(self, task: JsonObject) -> Unit:
        """Start all workers, and return the unit that keeps them running.

        Raises:
            WorkerError: A worker cannot serve.
        """
        self._task = task
        problems = await gathered(map(self._start, self._numbers))
        for number, problem in zip(self._numbers, problems, strict=True):
            if problem is not None:
                raise WorkerError(f"webhook worker {number} did not start: {problem}")
        log.info("webhook workers serve", workers=len(self._numbers))
        return Unit("webhook-workers", tasks=[self._keep_all])

    @property
    def problem(self) -> str | None:
        """A description of the workers that do not serve; None if all do."""
        missing = [str(number) for number in self._numbers if number not in self._workers]
        return f"webhook workers that do not serve: {', '.join(missing)}" if missing else None

    def dismiss(self) -> None:
        """Let all workers finish their requests and end."""
        self._dismissed = True
        for worker in self._workers.values():
            worker.dismiss()

    async def join(self) -> None:
        """Wait until all workers have ended."""
        await gathered(worker.join(_JOIN_SECONDS) for worker in self._workers.values())

    async def _start(self, number: int) -> str | None:
        """Start a worker; return why it does not serve, or None."""
        worker = await WorkerProcess.start(self._module, self._task)
        try:
            async with asyncio.timeout(_START_SECONDS):
                problem = await worker.serves()
        except TimeoutError:
            problem = f"it did not start serving within {_START_SECONDS:g} seconds"
        except asyncio.CancelledError:
            worker.dismiss()
            raise
        if problem is not None:
            worker.dismiss()
            await worker.join(_JOIN_SECONDS)
            return problem
        self._workers[number] = worker
        return None

    async def _keep_all(self) -> None:
        async with TaskGroup() as group:
            for number in self._numbers:
                group.create_task(self._keep(number))

    async def _keep(self, number: int) -> None:
        """Restart a worker whenever it ends.

        Raises:
            WorkerError: it ended too often.
        """
        loop = asyncio.get_running_loop()
        crashes: deque[float] = deque()
        problem: str | None = None
        while True:
            if problem is None:
                worker = self._workers[number]
                problem = await worker.ended()
                self._forget(number, worker)
            if self._dismissed:
                return
            while crashes and loop.time() - crashes[0] > CRASHES_WITHIN:
                crashes.popleft()
            if len(crashes) >= self._most_crashes:
                raise WorkerError(
                    f"webhook worker {number} crashed more than {self._most_crashes} times "
                    f"within {CRASHES_WITHIN:g} seconds, and will not be restarted: {problem}"
                )
            log.error("webhook worker crashed; it is started again", worker=number, cause=problem)
            self._restarts.total.inc()
            await asyncio.sleep(_FIRST_PAUSE * 2 ** len(crashes))
            crashes.append(loop.time())
            problem = await self._start(number)

    def _forget(self, number: int, worker: WorkerProcess) -> None:
        del self._workers[number]
        worker.dismiss()
        self._past.append(totals(worker.families))

    async def _metrics(self) -> list[list[Family]]:
        """Return the metrics of all workers, including crashed ones."""
        workers = list(self._workers.values())
        await gathered(worker.read_metrics() for worker in workers)
        return [*self._past, *(worker.families for worker in workers)]
