import asyncio
import os
import signal

import pytest

from pergola.runtime.process import signals
from pergola.runtime.process.signals import work_until_signalled
from tests.support.logs import captured_logs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_cancels_the_work(number: signal.Signals) -> None:
    ends: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cleaned up")

    with captured_logs(signals) as logs:
        await work_until_signalled(work())

    assert ends == ["cleaned up"]
    assert [line["event"] for line in logs] == ["stopping"]


async def test_work_that_fails_raises_the_first_error() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup():
            raise ValueError("no port")

    with pytest.raises(ValueError, match="no port"):
        await work_until_signalled(work())


async def test_an_error_after_the_signal_is_logged() -> None:
    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cannot release the Lease")

    with captured_logs(signals) as logs:
        await work_until_signalled(work())

    assert logs[-1] == {
        "event": "failed while stopping",
        "error": "cannot release the Lease",
        "log_level": "error",
    }


async def test_work_that_outlives_its_grace_is_logged() -> None:
    may_end = asyncio.Event()

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()

    with captured_logs(signals) as logs:
        await work_until_signalled(work(), grace=0)

    assert logs[-1] == {"event": "not stopped in time", "seconds": 0, "log_level": "warning"}
    may_end.set()
