"""The actions of a controller after each run, under virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from pergola.kube.errors import Conflict, Unreachable, api_error
from pergola.runtime.controlling import controller as controlling
from pergola.runtime.controlling.controller import (
    DONE,
    OUTAGE_RETRY_SECONDS,
    PATIENCE_SECONDS,
    Again,
    DependencyMissing,
    MustStop,
    Outcome,
    ReconcileError,
    Workers,
)
from pergola.runtime.metrics import Metrics
from tests.support.logs import captured_logs

pytestmark = pytest.mark.looptime(start=0)

Runs = list[tuple[str, float]]


def controller_of(
    reconcile: Callable[[str], Awaitable[Outcome]],
    *,
    workers: int = 1,
    deadline: float | None = None,
    metrics: Metrics | None = None,
) -> Workers[str]:
    return Workers(
        "test", reconcile, workers=workers, deadline=deadline, metrics=metrics or Metrics()
    )


@asynccontextmanager
async def running(controller: Workers[str]) -> AsyncIterator[Workers[str]]:
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Script:
    """A reconciler with scripted outcomes, the last one repeated; it records when runs start."""

    def __init__(self, *outcomes: Outcome | Exception) -> None:
        self._outcomes = list(outcomes)
        self.runs: Runs = []

    async def __call__(self, key: str) -> Outcome:
        self.runs.append((key, now()))
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def moments(self) -> list[float]:
        return [moment for _, moment in self.runs]


def now() -> float:
    return asyncio.get_running_loop().time()


def counted(metrics: Metrics, result: str) -> float | None:
    return metrics.registry.get_sample_value(
        "controller_runtime_reconcile_total", {"controller": "test", "result": result}
    )


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(name, {"controller": "test"})


async def test_a_completed_key_is_not_requeued() -> None:
    script, metrics = Script(DONE), Metrics()
    async with running(controller_of(script, metrics=metrics)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10_000)
    assert script.runs == [("a", 0.0)]
    assert counted(metrics, "success") == 1


async def test_a_key_is_requeued_after_the_requested_seconds() -> None:
    script, metrics = Script(Again(60), Again(5), DONE), Metrics()
    async with running(controller_of(script, metrics=metrics)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10_000)
    assert script.moments == pytest.approx([0, 60, 65])
    assert counted(metrics, "requeue_after") == 2
    assert counted(metrics, "success") == 1


async def test_an_earlier_run_replaces_the_requested_time() -> None:
    script = Script(Again(60), DONE)
    async with running(controller_of(script)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10)
        controller.queue.add("a")
        await asyncio.sleep(10_000)
    assert script.moments == pytest.approx([0, 10])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("unexpected"),
        ReconcileError("reported"),
        Unreachable("away"),
        Conflict(409, {}),
    ],
)
async def test_a_failed_key_is_requeued_with_growing_backoff(error: Exception) -> None:
    script, metrics = Script(error, error, error, DONE), Metrics()
    async with running(controller_of(script, metrics=metrics)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10)
    assert script.moments == pytest.approx([0, 0.005, 0.015, 0.035])
    assert counted(metrics, "error") == 3
    assert value(metrics, "controller_runtime_reconcile_errors_total") == 3
    assert value(metrics, "controller_runtime_reconcile_timeouts_total") == 0


async def test_a_worker_survives_the_cancellation_of_something_that_a_run_awaits() -> None:
    runs: Runs = []

    async def reconcile(key: str) -> Outcome:
        runs.append((key, now()))
        if len(runs) == 1:
            shared = asyncio.get_running_loop().create_future()
            shared.cancel()
            await shared
        return DONE

    metrics = Metrics()
    async with running(controller_of(reconcile, metrics=metrics)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10)
    assert runs == [("a", 0.0), ("a", pytest.approx(0.005))]
    assert counted(metrics, "error") == 1


async def test_a_success_resets_the_backoff() -> None:
    script = Script(ReconcileError(), ReconcileError(), Again(1), ReconcileError(), DONE)
    async with running(controller_of(script)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(10)
    assert script.moments == pytest.approx([0, 0.005, 0.015, 1.015, 1.020])


async def test_a_run_that_takes_too_long_is_cancelled_and_counted() -> None:
    metrics = Metrics()
    began: list[float] = []

    async def stuck(_: str) -> Outcome:
        began.append(now())
        if len(began) == 1:
            await asyncio.Event().wait()
        return DONE

    async with running(controller_of(stuck, deadline=60, metrics=metrics)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(100)
    assert began == pytest.approx([0, 60.005])
    assert value(metrics, "controller_runtime_reconcile_timeouts_total") == 1
    assert counted(metrics, "error") == 1


async def test_a_timeout_inside_a_run_is_a_failure_and_not_the_deadline_of_the_run() -> None:
    metrics = Metrics()
    script = Script(TimeoutError("the cloud did not answer"), DONE)
    with captured_logs(controlling) as logs:
        async with running(controller_of(script, deadline=60, metrics=metrics)) as controller:
            controller.queue.add("a")
            await asyncio.sleep(10)
    assert value(metrics, "controller_runtime_reconcile_timeouts_total") == 0
    assert counted(metrics, "error") == 1
    assert [(line["event"], str(line.get("exc_info"))) for line in logs] == [
        ("reconcile failed", "the cloud did not answer")
    ]


async def test_a_permanently_missing_dependency_becomes_an_error() -> None:
    with captured_logs(controlling) as logs:
        async with running(controller_of(Script(DependencyMissing("no namespace")))) as controller:
            controller.queue.add("a")
            await asyncio.sleep(4 * PATIENCE_SECONDS)
    levels = [line["log_level"] for line in logs]
    first = levels.index("error")
    assert set(levels[:first]) == {"info"}
    assert set(levels[first:]) == {"error"}
    assert logs[first - 1]["retry_seconds"] < PATIENCE_SECONDS <= logs[first]["retry_seconds"]


async def test_errors_that_must_stop_the_process_are_not_retried() -> None:
    script = Script(MustStop("the lease is lost"), DONE)
    controller = controller_of(script)
    controller.queue.add("a")
    with pytest.raises(ExceptionGroup) as raised:
        await controller.run()
    assert [str(error) for error in raised.value.exceptions] == ["the lease is lost"]
    assert script.moments == [0]


class Slow:
    """A reconciler whose runs take a second; it records the keys that run concurrently."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.most = 0
        self.runs: list[str] = []

    async def __call__(self, key: str) -> Outcome:
        assert key not in self.running
        self.running.append(key)
        self.most = max(self.most, len(self.running))
        await asyncio.sleep(1)
        self.running.remove(key)
        self.runs.append(key)
        return DONE


async def test_one_key_never_runs_twice_at_once() -> None:
    slow, metrics = Slow(), Metrics()
    async with running(controller_of(slow, workers=5, metrics=metrics)) as controller:
        for _ in range(4):  # at 0, 0.6, 1.2 and 1.8, of which the last two are one run
            controller.queue.add("a")
            await asyncio.sleep(0.6)
        await asyncio.sleep(10)
    assert slow.most == 1
    assert slow.runs == ["a"] * 3
    assert counted(metrics, "error") == 0


async def test_the_number_of_workers_limits_concurrent_keys() -> None:
    slow, metrics = Slow(), Metrics()
    async with running(controller_of(slow, workers=3, metrics=metrics)) as controller:
        for key in "abcdefg":
            controller.queue.add(key)
        await asyncio.sleep(0.5)
        assert value(metrics, "controller_runtime_active_workers") == 3
        await asyncio.sleep(10)
        assert value(metrics, "controller_runtime_active_workers") == 0
    assert slow.most == 3
    assert sorted(slow.runs) == list("abcdefg")


async def test_a_failing_key_does_not_delay_others() -> None:
    script = Script(ReconcileError())
    async with running(controller_of(script)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(100)
        controller.queue.add("b")
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    assert ("b", 100.0) in script.runs


async def test_a_cancelled_run_leaves_the_queue_consistent() -> None:
    metrics = Metrics()
    slow = Slow()
    controller = controller_of(slow, workers=2, metrics=metrics)
    async with running(controller):
        controller.queue.add("a")
        controller.queue.add("b")
        await asyncio.sleep(0.5)
        controller.queue.add("a")
    assert slow.runs == []
    assert value(metrics, "controller_runtime_active_workers") == 0
    # A request in the meantime is not lost, and nothing else waits.
    assert len(controller.queue) == 1
    slow.running.clear()
    async with running(controller):
        controller.queue.add("b")
        await asyncio.sleep(10)
    assert slow.runs == ["a", "b"]
    assert controller.queue.is_idle


async def test_a_key_is_requeued_soon_after_an_outage_of_any_length() -> None:
    away = ReconcileError("the target did not answer")
    away.__cause__ = Unreachable("cannot connect")
    for error in (away, Unreachable("cannot connect"), api_error(503, {})):
        script = Script(error)
        async with running(controller_of(script)) as controller:
            controller.queue.add("a")
            await asyncio.sleep(3600)
        ends = [time for _, time in script.runs]
        waits = [later - earlier for earlier, later in pairwise(ends)]
        assert max(waits) == pytest.approx(OUTAGE_RETRY_SECONDS)


async def test_other_errors_back_off_for_longer() -> None:
    script = Script(ReconcileError("the manifest is wrong"))
    async with running(controller_of(script)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(3600)
    ends = [time for _, time in script.runs]
    assert max(later - earlier for earlier, later in pairwise(ends)) > 500


@pytest.mark.parametrize(
    "error",
    [
        MustStop("the lease is lost"),
        ExceptionGroup("writes", [ValueError("wrong"), MustStop("the lease is lost")]),
        ExceptionGroup("all", [ExceptionGroup("writes", [MustStop("the lease is lost")])]),
    ],
    ids=["alone", "in a group", "in a group of a group"],
)
async def test_errors_that_must_stop_the_process_end_the_controller(error: Exception) -> None:
    controller = controller_of(Script(error), workers=2)
    controller.queue.add("a")
    with pytest.raises(ExceptionGroup) as ended:
        await controller.run()
    assert [str(each) for each in ended.value.exceptions] == ["the lease is lost"]


async def test_a_reconciler_that_swallows_its_cancellation_does_not_block_a_worker() -> None:
    runs = []

    async def reconcile(key: str) -> Outcome:
        runs.append(key)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("a library hid the cancellation") from None
        return DONE

    controller = controller_of(reconcile)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(1)
    assert runs == ["a"]


@pytest.mark.parametrize(("asked", "waited"), [(20, 20), (3600, 30)])
@pytest.mark.parametrize("code", [429, 503])
async def test_a_key_waits_as_long_as_a_busy_server_asks(
    code: int, asked: int, waited: int
) -> None:
    busy = api_error(code, {"details": {"retryAfterSeconds": asked}})
    wrapped = ReconcileError("cannot apply")
    wrapped.__cause__ = busy
    script = Script(busy, wrapped, DONE)
    async with running(controller_of(script)) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1_000)
    assert script.moments == [0, waited, 2 * waited]
