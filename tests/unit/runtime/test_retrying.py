"""A missed deadline reports the failure that was being retried."""

import asyncio

import pytest

from pergola.runtime.retrying import collect_failures, retrying

pytestmark = pytest.mark.looptime(start=0)

THROTTLED = ConnectionError("throttled")


async def retry_for_ever(error: Exception) -> None:
    with retrying() as failed:
        while True:
            failed(error)
            await asyncio.sleep(1)


async def test_a_missed_deadline_has_the_retried_failure_as_its_cause() -> None:
    with collect_failures() as failures, pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await retry_for_ever(THROTTLED)

    assert failures.last is THROTTLED


async def test_failures_of_child_tasks_count_too() -> None:
    with collect_failures() as failures, pytest.raises(TimeoutError):
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(retry_for_ever(THROTTLED))

    assert failures.last is THROTTLED


async def test_an_operation_that_finally_succeeded_is_not_a_cause() -> None:
    with collect_failures() as failures:
        with retrying() as failed:
            failed(THROTTLED)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.sleep(100)

    assert failures.last is None


async def test_a_final_failure_is_not_the_cause_of_a_later_timeout() -> None:
    async def fail_once() -> None:
        with retrying() as failed:
            failed(THROTTLED)
            raise THROTTLED

    with collect_failures() as failures, pytest.raises(ConnectionError):
        await fail_once()

    assert failures.last is None


async def test_every_deadline_around_a_retry_reports_it() -> None:
    with collect_failures() as outer, collect_failures() as inner, pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await retry_for_ever(THROTTLED)

    assert (outer.last, inner.last) == (THROTTLED, THROTTLED)


async def test_a_retry_without_a_deadline_is_allowed() -> None:
    with retrying() as failed:
        failed(THROTTLED)
