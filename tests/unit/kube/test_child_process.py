"""Child processes end even if their output is not read."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process

import pytest
import uvloop

from pergola.kube.child_process import end

SOON = 30.0  # seconds


async def started(script: str) -> Process:
    return await asyncio.create_subprocess_exec("sh", "-c", script, stdout=PIPE)


async def test_a_process_with_unread_output_is_ended() -> None:
    process = await started("exec yes")
    assert process.stdout is not None
    await process.stdout.readexactly(1)
    for _ in range(1_000):  # asyncio reads on until it has read too much
        await asyncio.sleep(0)

    async with asyncio.timeout(SOON):
        await end(process)

    assert process.returncode == -9


async def test_output_that_another_process_keeps_open_is_given_up() -> None:
    process = await started("sleep 100 & echo $!; exec sleep 100")
    assert process.stdout is not None
    other = int(await process.stdout.readline())

    async with asyncio.timeout(SOON):
        await end(process)

    assert process.returncode == -9
    os.kill(other, signal.SIGKILL)


async def test_a_process_that_has_ended_stays_as_it_is() -> None:
    process = await started("exit 3")
    assert await process.wait() == 3

    await end(process)

    assert process.returncode == 3


@pytest.mark.parametrize("script", ["exec sleep 100", "exec 1>&-; exec sleep 100"])
async def test_a_process_without_output_is_ended(script: str) -> None:
    process = await started(script)

    await end(process)

    assert process.returncode == -9


async def test_the_return_code_of_a_killed_process_is_not_lost() -> None:
    """asyncio's own way of closing a process loses one return code in 25."""
    codes = set()
    for _ in range(200):
        process = await asyncio.create_subprocess_exec("sleep", "100", stdout=PIPE)
        await end(process)
        codes.add(process.returncode)

    assert codes == {-9}


def test_processes_end_alike_in_the_event_loop_of_the_product() -> None:
    async def ended() -> int | None:
        process = await started("sleep 100 & echo $!; exec sleep 100")
        assert process.stdout is not None
        other = int(await process.stdout.readline())
        async with asyncio.timeout(SOON):
            await end(process)
        os.kill(other, signal.SIGKILL)
        return process.returncode

    assert {uvloop.run(ended()) for _ in range(10)} == {-9}
