"""The durations of observations for conditions, in virtual time."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from pergola.operator.care.check import Observed
from pergola.operator.care.metrics import CareMetrics
from pergola.operator.care.observe import Timed


@pytest.mark.looptime
async def test_the_longest_observation_of_a_condition_counts() -> None:
    timed = Timed()

    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async with asyncio.TaskGroup() as group:
        results = [
            group.create_task(timed(after(3), "A", "B")),
            group.create_task(timed(after(5), "A")),
            group.create_task(timed(after(4), "A")),
        ]
    assert [result.result() for result in results] == [3, 5, 4]
    assert timed.seconds == {"A": pytest.approx(5), "B": pytest.approx(3)}

    registry = CollectorRegistry()
    observed = Observed(
        resources={}, expected=(), etcds={}, deployments={}, probe=None, seconds=timed.seconds
    )
    CareMetrics(registry).observe(observed)
    value = registry.get_sample_value("pergola_garden_check_seconds", {"condition": "A"})
    assert value == pytest.approx(5)
