"""The metrics of flows, under the names of spec 20 §9.3."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from pergola.flow.errors import FlowFailed
from pergola.flow.graph import Graph
from pergola.flow.metrics import FlowMetrics
from pergola.flow.run import run

pytestmark = pytest.mark.looptime(start=0)


async def three_seconds() -> None:
    await asyncio.sleep(3)


async def broken() -> None:
    raise ConnectionError("no")


async def test_metrics_have_the_names_that_dashboards_use() -> None:
    registry = CollectorRegistry()
    metrics = FlowMetrics(registry)
    graph = Graph("garden")
    graph.add("a", three_seconds)
    graph.add("b", three_seconds, after=["a"], skip="off")
    graph.add("c", broken, after=["b"])
    graph.add("d", broken, after=["c"])
    with pytest.raises(FlowFailed):
        await run(graph, observers=[metrics.of("garden")])

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"flow": "garden", **labels})

    assert value("flow_task_duration_seconds_sum", task_id="a") == pytest.approx(3)
    assert value("flow_task_delay_seconds_sum", task_id="a", skipped="false") == 0
    assert value("flow_task_delay_seconds_sum", task_id="b", skipped="true") == pytest.approx(3)
    assert value("flow_task_duration_seconds_count", task_id="b") is None
    assert value("flow_task_results_total", task_id="a", result="success") == 1
    assert value("flow_task_results_total", task_id="c", result="error") == 1
    assert value("flow_task_results_total", task_id="d", result="error") is None
    assert value("flow_duration_seconds_sum") == pytest.approx(3)
