"""The soak of hours reads the figures and logs of processes, and judges them."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.support.process_samples import HELD, Sample, Samples, grown, growth, held_by
from tests.support.unexpected_lines import warnings

_PROGRAM = """
import asyncio, sys
from aiohttp import web
from pergola.runtime import Metrics

metrics, held = Metrics(), []

async def serve(request):
    return web.Response(body=metrics.render())

async def main():
    app = web.Application()
    app.router.add_get("/metrics", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    held.extend(open("/dev/null") for _ in range(10))
    held.extend(asyncio.create_task(asyncio.Event().wait()) for _ in range(20))
    print("grown", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def samples(values: dict[float, float]) -> list[Sample]:
    """Return samples of memory by their seconds."""
    return [Sample(second, {"memory": value}) for second, value in values.items()]


def test_growth_is_that_of_most_samples_whatever_the_peaks() -> None:
    steady = {second * 60.0: 100 + second / 60 for second in range(60)}
    peaks = {600.0: 500.0, 1200.0: 900.0, 3000.0: 20.0}
    found = growth(samples({**steady, **peaks}), "memory")
    assert found is not None
    assert found.each_hour == pytest.approx(1.0, abs=0.01)
    assert found.before == pytest.approx(100, abs=0.2)


def test_a_growth_lasts_if_both_halves_of_the_time_show_it() -> None:
    minutes = [second * 60.0 for second in range(60)]
    leaks = growth(samples({each: 100 + each / 3600 for each in minutes}), "memory")
    warms_up = growth(samples({each: 100 + min(each, 1500) / 100 for each in minutes}), "memory")
    late = growth(samples({each: 100 + max(each, 2400) / 100 for each in minutes}), "memory")
    assert leaks
    assert warms_up
    assert late
    assert leaks.lasting == pytest.approx(1.0)
    assert warms_up.each_hour > 1
    assert warms_up.lasting == late.lasting == 0


def test_a_growth_is_explained_by_the_series_that_grew() -> None:
    before = 'pergola_cached_objects{kind="Secret"} 3.0\npergola_tasks{name="a"} 1.0\n'
    after = (
        'pergola_cached_objects{kind="Secret"} 5.0\npergola_cached_objects{kind="Pod"} 1.0\n'
        'pergola_tasks{name="a"} 1.0\n'
    )
    assert grown(before, after, "objects") == [
        'pergola_cached_objects{kind="Pod"} from 0 to 1.0',
        'pergola_cached_objects{kind="Secret"} from 3.0 to 5.0',
    ]
    assert grown(before, after, "series") == ['pergola_cached_objects{kind="Pod"}']
    assert grown(before, after, "tasks") == grown(before, after, "memory") == []


def test_the_growth_of_too_few_samples_is_unknown() -> None:
    assert growth(samples({0.0: 1.0, 60.0: 2.0}), "memory") is None
    assert growth(samples({second * 60.0: 1.0 for second in range(60)}), "tasks") is None


def test_metrics_are_summed_over_their_labels() -> None:
    text = (
        "# TYPE pergola_tasks gauge\npergola_tasks 7.0\n"
        'pergola_cached_objects{group="",kind="Secret"} 3.0\n'
        'pergola_cached_objects{group="apps",kind="Deployment"} 1e+01\n'
    )
    assert held_by(text) == {"tasks": 7, "objects": 13, "series": 3}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the log of a process."""
    return tmp_path / "log"


@pytest.fixture
def process(log: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process with metrics, which grows for each line that it reads."""
    with log.open("w") as output:
        command = (sys.executable, "-c", _PROGRAM)
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, text=True)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        stdin_of(running).close()


def stdin_of(process: "subprocess.Popen[str]") -> IO[str]:
    """Return the standard input of a process."""
    assert process.stdin is not None
    return process.stdin


def wait_for(text: str, log: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until a process has written a line."""
    while text not in log.read_text():
        assert process.poll() is None


async def test_the_figures_and_new_log_lines_of_a_process_are_read_from_outside(
    process: "subprocess.Popen[str]", log: Path
) -> None:
    taken = Samples()
    wait_for("ready", log, process)
    await taken.take([(process.pid, "mine")])
    print(file=stdin_of(process), flush=True)
    wait_for("grown", log, process)
    await taken.take([(process.pid, "mine"), (2**22 + 1, "ended")])
    [before, after] = (each.held for each in taken.of_process[process.pid])
    assert before.keys() == after.keys() == {*HELD}
    # The connection on which the metrics are read counts as well.
    assert after["descriptors"] - before["descriptors"] == pytest.approx(10, abs=1)
    assert after["tasks"] - before["tasks"] == pytest.approx(20, abs=1)
    assert after["memory"] > 1
    assert taken.names == {process.pid: "mine"}
    assert taken.lines == [(log.name, b"grown")]


async def test_a_process_that_does_not_answer_in_http_costs_only_its_sample() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    taken = Samples()
    taken._urls[os.getpid()] = f"http://127.0.0.1:{port}/metrics"
    async with server:
        await taken.take([(os.getpid(), "mine")])
    assert not taken.of_process


def test_unexpected_lines_are_counted_with_an_example() -> None:
    line = b'{"level":"warn","logger":"cache","msg":"lost"}'
    known = b'{"level":"info","logger":"cache","msg":"found"}'
    assert warnings(("log", each) for each in (line, line, known, b"Traceback", b"null")) == [
        f"2 times cache: lost: log: {line.decode()}",
        "2 times no JSON: log: Traceback",
    ]
