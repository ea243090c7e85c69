"""A cancelled group ends as cancelled, whatever its tasks do."""

import asyncio
from collections.abc import Coroutine
from typing import Never

import pytest

from pergola.runtime.failures import Failures, only_error, sentence_of
from pergola.runtime.task_group import TaskGroup, gathered, is_being_cancelled, together

pytestmark = pytest.mark.looptime(start=0)


async def fail_when_cancelled() -> Never:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("no write is permitted") from None
    raise AssertionError


async def work(runs: list[str]) -> None:
    """Handle every error, as the worker of a controller does."""
    while True:
        runs.append("run")
        try:
            async with TaskGroup() as group:
                group.create_task(fail_when_cancelled())
        except ExceptionGroup:
            runs.append("failed")


async def test_a_group_whose_tasks_fail_while_it_is_cancelled_is_cancelled() -> None:
    runs: list[str] = []
    working = asyncio.create_task(work(runs))
    await asyncio.sleep(1)
    working.cancel()
    await asyncio.wait({working}, timeout=1)
    assert working.cancelled()
    assert runs == ["run"]


async def fail() -> Never:
    raise ValueError("wrong")


async def fail_in_a_group(*, in_block: bool) -> None:
    async with TaskGroup() as group:
        group.create_task(fail())
        if in_block:
            await asyncio.sleep(60)


@pytest.mark.parametrize("in_block", [True, False])
async def test_a_group_that_was_not_cancelled_raises_the_errors_of_its_tasks(
    *, in_block: bool
) -> None:
    with pytest.raises(ExceptionGroup) as failed:
        await fail_in_a_group(in_block=in_block)
    assert [str(error) for error in failed.value.exceptions] == ["wrong"]
    assert not is_being_cancelled()


async def test_a_group_that_is_cancelled_without_errors_is_cancelled() -> None:
    async def wait() -> None:
        async with TaskGroup() as group:
            group.create_task(asyncio.sleep(60))

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_a_task_may_start_others() -> None:
    ended = []

    async def end(number: int) -> None:
        await asyncio.sleep(number)
        ended.append(number)

    async with TaskGroup() as group:

        async def first() -> None:
            await end(1)
            group.create_task(end(2))

        group.create_task(first())
    assert ended == [1, 2]


async def test_a_timeout_is_raised_as_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), TaskGroup() as group:
            group.create_task(fail_when_cancelled())
    assert not is_being_cancelled()
    await asyncio.sleep(1)  # which nothing cancels


async def group_of(*coroutines: Coroutine[None, None, None]) -> None:
    async with TaskGroup() as group:
        for each in coroutines:
            group.create_task(each)


async def refuse(text: str) -> Never:
    raise Conflict(text)


class Conflict(Exception):
    """An error with a text for people."""


async def test_the_text_of_a_failed_group_names_the_errors_of_nested_groups() -> None:
    with pytest.raises(ExceptionGroup) as failed:
        await group_of(group_of(group_of(refuse("a is full"), refuse("b is full"), fail())))
    expected = "a is full; b is full; ValueError: wrong"
    error = failed.value
    assert str(error) == expected
    assert sentence_of(error) == expected
    conflicts, others = error.split(Conflict)
    assert str(conflicts) == "a is full; b is full"
    assert str(others) == "ValueError: wrong"


async def test_the_only_error_of_nested_groups_is_found() -> None:
    with pytest.raises(ExceptionGroup) as failed:
        await group_of(group_of(group_of(refuse("full"))))
    assert isinstance(only_error(failed.value), Conflict)

    several = Failures("", [Conflict("a"), Conflict("b")])
    assert only_error(several) is several


async def write(seconds: float, log: list[str]) -> str:
    """Work for a while, as a request does, and note how it ended."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        log.append(f"{seconds:g} cancelled")
        raise
    log.append(f"{seconds:g} done")
    return f"{seconds:g}"


async def fail_after(seconds: float, error: Exception) -> str:
    await asyncio.sleep(seconds)
    raise error


async def test_results_are_in_the_order_of_the_coroutines() -> None:
    log: list[str] = []
    assert await gathered(write(seconds, log) for seconds in (3, 1, 2)) == ["3", "1", "2"]
    assert await together(write(2, log), asyncio.sleep(1, 5)) == ("2", 5)
    assert await gathered(list[Coroutine[None, None, str]]()) == []


async def test_nothing_goes_on_after_the_first_error() -> None:
    log: list[str] = []
    first, second = KeyError("first"), ValueError("second")
    with pytest.raises(KeyError, match="first"):
        await gathered([write(9, log), fail_after(2, first), write(1, log), fail_after(2, second)])
    assert log == ["1 done", "9 cancelled"]
    assert not is_being_cancelled()


async def test_a_cancelled_caller_leaves_nothing_running() -> None:
    log: list[str] = []
    running = asyncio.create_task(gathered([write(9, log), write(8, log)]))
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait({running}, timeout=1)
    assert running.cancelled()
    assert sorted(log) == ["8 cancelled", "9 cancelled"]
