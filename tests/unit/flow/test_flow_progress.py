"""Progress: spec 20 §9.3, under virtual time."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import pytest

from pergola.flow.errors import FlowFailed
from pergola.flow.graph import Action, Graph
from pergola.flow.progress import Progress, Report
from pergola.flow.run import run

pytestmark = pytest.mark.looptime(start=0)

SKIPPED = "skipped"


class Status:
    """A status that records reports and their times; it can be slow, and can fail."""

    def __init__(self, latency: float = 0.0, failures: int = 0) -> None:
        self.latency = latency
        self.failures = failures
        self.reports: list[tuple[float, int, str]] = []
        self.attempts = 0

    async def report(self, report: Report) -> None:
        self.attempts += 1
        await asyncio.sleep(self.latency)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route to host")
        at = round(asyncio.get_running_loop().time(), 2)
        self.reports.append((at, report.percent, report.description))


def chain(name: str, seconds: Mapping[str, float | str]) -> Graph:
    """Return a chain of tasks; text instead of seconds is the reason why a task is skipped."""
    graph = Graph(name)
    before: list[str] = []
    for task, takes in seconds.items():
        skip = takes if isinstance(takes, str) else None
        graph.add(task, waits(0 if isinstance(takes, str) else takes), after=before, skip=skip)
        before = [task]
    return graph


def waits(seconds: float) -> Action:
    """Return an action that takes some seconds, and fails if they are negative."""

    async def action() -> None:
        await asyncio.sleep(abs(seconds))
        if seconds < 0:
            raise ConnectionError("no")

    return action


async def followed(graph: Graph, status: Status, span: tuple[int, int] = (0, 100)) -> Status:
    await run(graph, progress=Progress(graph, status.report, span=span))
    return status


async def test_percent_counts_successful_tasks_and_the_description_names_running_ones() -> None:
    graph = chain("Garden", {"Deploying etcd": 6, "Waiting for etcd": 12, "Deploying API": 3})
    status = await followed(graph, Status())
    assert status.reports == [
        (0, 0, "Starting Garden"),
        (6.05, 33, "Waiting for etcd"),
        (18.05, 66, "Deploying API"),
        (21, 100, "Garden finished"),
    ]


async def test_tasks_that_run_at_once_are_named_together() -> None:
    graph = Graph("demo")
    graph.add("first", waits(1))
    for name in ("b", "a"):
        graph.add(name, waits(20), after=["first"])
    assert (5.05, 33, "b, a") in (await followed(graph, Status())).reports


@pytest.mark.parametrize("middle", ["off", ""])
async def test_skipped_tasks_are_not_counted(middle: str) -> None:
    graph = Graph("demo")
    graph.add("a", waits(7))
    graph.add("off", waits(0), after=["a"], skip=middle or (lambda: "off"))
    graph.add("b", waits(7), after=["off"])
    assert (7.05, 50, "b") in (await followed(graph, Status())).reports


async def test_forty_tasks_within_a_second_cause_at_most_three_reports() -> None:
    graph = chain("demo", {str(number): 0.02 for number in range(40)})
    status = await followed(graph, Status())
    assert [percent for _, percent, _ in status.reports] == [0, 100]


async def test_a_report_is_not_repeated() -> None:
    status = await followed(chain("demo", {"a": 1, "b": 60, "c": 1}), Status())
    assert [percent for _, percent, _ in status.reports] == [0, 33, 66, 100]


async def test_a_flow_with_nothing_to_do_is_finished_at_once() -> None:
    status = await followed(chain("demo", {"a": SKIPPED, "b": SKIPPED}), Status())
    assert status.reports == [(0, 100, "demo finished")]


async def test_a_failed_report_fails_no_task_and_is_retried() -> None:
    status = await followed(chain("demo", {"a": 3, "b": 10}), Status(failures=1))
    assert status.reports == [(5, 50, "b"), (13, 100, "demo finished")]


async def test_a_slow_report_does_not_delay_the_tasks() -> None:
    graph, status = chain("demo", {"a": 3, "b": 3}), Status(latency=4)
    result = await run(graph, progress=Progress(graph, status.report))
    assert result.seconds == pytest.approx(6)
    assert status.reports[-1] == (10, 100, "demo finished")


async def test_a_final_report_that_hangs_is_cancelled() -> None:
    graph, status = chain("demo", {"a": 3}), Status(latency=10_000)
    await run(graph, progress=Progress(graph, status.report, closing_seconds=7))
    assert asyncio.get_running_loop().time() == pytest.approx(10)


async def test_when_a_flow_fails_the_last_report_keeps_the_percent_and_names_the_tasks() -> None:
    graph, status = chain("demo", {"a": 1, "b": -1, "c": 1}), Status()
    with pytest.raises(FlowFailed):
        await run(graph, progress=Progress(graph, status.report))
    assert status.reports[-1] == (2, 33, "demo failed: b")


async def test_a_flow_can_cover_a_part_of_the_percentage() -> None:
    status = await followed(chain("setup", {"a": 6, "b": 6}), Status(), span=(10, 30))
    assert [percent for _, percent, _ in status.reports] == [10, 20, 30]
    assert status.reports[-1][2] == "setup finished"


async def test_reports_end_with_a_cancelled_flow() -> None:
    graph, status = chain("demo", {"a": 1, "b": 60}), Status()
    flow = asyncio.create_task(run(graph, progress=Progress(graph, status.report)))
    await asyncio.sleep(8)
    flow.cancel()
    await asyncio.wait({flow})
    assert flow.cancelled()
    await asyncio.sleep(60)
    assert len(asyncio.all_tasks()) == 1
    assert status.reports[-1] == (8, 50, "demo failed: b")


async def test_a_flow_that_is_not_the_last_reports_failure_but_not_success() -> None:
    for seconds, last in ((1, "Starting Garden"), (-1, "Garden failed: A")):
        graph, status = chain("Garden", {"A": seconds}), Status()
        progress = Progress(graph, status.report, is_followed=True)
        with suppress(FlowFailed):
            await run(graph, progress=progress)
        assert status.reports[-1][2] == last
