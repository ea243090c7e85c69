"""Work alongside a block: both run concurrently, and neither survives a failure of the block."""

import asyncio

import pytest

from pergola.operator.reconcile.alongside import alongside


async def test_the_work_runs_while_the_block_runs() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()

    async with alongside(work()):
        await begun.wait()


async def test_the_block_ends_when_the_work_is_done() -> None:
    done = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append(True)

    async with alongside(work()):
        pass
    assert done


async def test_a_failure_of_the_work_is_raised_after_the_block() -> None:
    steps = []

    async def work() -> None:
        raise ValueError("no key")

    async def both() -> None:
        async with alongside(work()):
            await asyncio.sleep(0)
            steps.append("block")

    with pytest.raises(ValueError, match="no key"):
        await both()
    assert steps == ["block"]


async def test_a_failed_block_cancels_the_work_and_its_error_is_raised() -> None:
    ends = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("work")

    async def both() -> None:
        async with alongside(work()):
            await asyncio.sleep(0)
            raise ValueError("no flow")

    with pytest.raises(ValueError, match="no flow"):
        await both()
    assert ends == ["work"]


async def test_cancelling_the_block_cancels_the_work() -> None:
    begun, ends = asyncio.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("work")

    async def both() -> None:
        async with alongside(work()):
            pass

    task = asyncio.create_task(both())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == ["work"]
