"""Webhooks in several processes: one port, one certificate, one page of metrics."""

import asyncio
import os
import re
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pergola.admission.serving import Listening, WebhookServer, Workers
from pergola.admission.workers import WorkerError, WorkerPool
from pergola.admission.workers.process import WorkerProcess
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.listening import ListenError, listen
from pergola.runtime.task_group import TaskGroup
from pergola.testing.waiting import PATIENCE
from tests.support.admission_site import read_answer, request, write_pair
from tests.support.webhook_worker import PATH, WORKER, Pid, task_at

AGAIN = 0.05  # seconds between two connections
REQUESTS = "controller_runtime_webhook_requests_total"
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers import their module, which is not part of the package."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


class Site:
    """A process and one worker that serve."""

    def __init__(self, folder: Path, metrics: Metrics, server: WebhookServer) -> None:
        self.folder = folder
        self.server = server
        self.requests = 0
        self._metrics = metrics

    async def pid(self, authority: bytes | None = None) -> int | None:
        """Return the process that answers a new connection, or None if none does."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED if authority else ssl.CERT_NONE
        if authority:
            context.load_verify_locations(cadata=authority.decode())
        try:
            reader, writer = await asyncio.open_connection(
                "localhost", self.server.port, ssl=context
            )
        except (OSError, ssl.SSLError):
            return None
        writer.write(request(b"{}", PATH))
        answer = b""
        with suppress(OSError):
            answer = await read_answer(reader)
        writer.close()
        if not answer:
            return None
        self.requests += 1
        return int(answer.rpartition(b"\r\n\r\n")[2])

    async def pids(
        self, enough: Callable[[set[int]], bool], authority: bytes | None = None
    ) -> set[int]:
        """Connect until `enough` accepts the set of processes that answered, and return it."""
        found: set[int] = set()
        async with asyncio.timeout(PATIENCE):
            while not enough(found):
                pid = await self.pid(authority)
                if pid is None:
                    await asyncio.sleep(AGAIN)
                else:
                    found.add(pid)
        return found

    async def worker(self) -> int:
        """Return the process id of the worker."""
        return workers_of(await self.pids(lambda pids: bool(workers_of(pids)))).pop()

    async def ready(self) -> None:
        """Wait until all processes serve."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self.server.is_ready() is None:
                    return
                await asyncio.sleep(AGAIN)

    async def total(self, name: str) -> float:
        """Return the sum of the samples of a metric."""
        text = (await self._metrics.render_all()).decode()
        return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)))

    async def reaches(self, name: str, value: float) -> None:
        """Wait until a metric has a value, because a busy worker may answer late."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self.total(name) == value:
                    return
                await asyncio.sleep(AGAIN)


def workers_of(pids: set[int]) -> set[int]:
    """Return all processes except this one."""
    return pids - {os.getpid()}


@asynccontextmanager
async def serving(
    folder: Path, *, port: int = 0, crashes: int = 5, problem: str = ""
) -> AsyncIterator[Site]:
    metrics = Metrics()
    pool = WorkerPool(1, WORKER, metrics, most_crashes=crashes)
    server = WebhookServer(
        {PATH: Pid(metrics)},
        Listening(host="localhost", port=port, directory=folder),
        metrics,
        workers=Workers(pool, lambda at: task_at(at, problem)),
    )
    async with server.served(), TaskGroup() as group:
        running = [group.create_task(unit.run()) for unit in server.units]
        yield Site(folder, metrics, server)
        for each in running:
            each.cancel()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    write_pair(tmp_path)
    async with serving(tmp_path) as found:
        yield found


async def test_all_processes_answer_on_one_port_and_their_metrics_are_summed(site: Site) -> None:
    await site.pids(lambda pids: len(pids) == 2)

    assert await site.server.is_ready() is None
    await site.reaches(REQUESTS, site.requests)
    await site.reaches("certwatcher_read_certificate_total", 2)


async def test_a_new_certificate_is_served_by_all_processes(site: Site) -> None:
    await site.pids(lambda pids: len(pids) == 2)

    authority = write_pair(site.folder)

    await site.pids(lambda pids: len(pids) == 2, authority)


async def test_a_killed_worker_is_restarted_and_totals_do_not_decrease(
    site: Site,
) -> None:
    killed = await site.worker()
    await site.reaches(REQUESTS, site.requests)
    os.kill(killed, signal.SIGKILL)

    await site.pids(lambda pids: bool(workers_of(pids) - {killed}))

    await site.ready()
    assert await site.total("pergola_webhook_worker_restarts_total") == 1
    await site.reaches(REQUESTS, site.requests)


async def test_a_worker_that_keeps_crashing_ends_the_process(tmp_path: Path) -> None:
    write_pair(tmp_path)

    async def crash() -> None:
        async with serving(tmp_path, crashes=0) as site:
            os.kill(await site.worker(), signal.SIGKILL)
            await asyncio.Event().wait()

    with pytest.RaisesGroup(
        pytest.RaisesExc(WorkerError, match=r"crashed more than 0 times .* by SIGKILL"),
        flatten_subgroups=True,
    ):
        await crash()


async def test_a_worker_that_cannot_serve_reports_the_reason(tmp_path: Path) -> None:
    write_pair(tmp_path)

    with pytest.raises(WorkerError, match="webhook worker 1 did not start: the port is haunted"):
        async with serving(tmp_path, problem="the port is haunted"):
            pass


async def test_a_port_that_another_program_shares_is_refused(tmp_path: Path) -> None:
    write_pair(tmp_path)
    with (
        listen("localhost", 0, "a test", shared=True) as taken,
        pytest.raises(ListenError, match="another process listens there"),
    ):
        async with serving(tmp_path, port=taken.getsockname()[1]):
            pass


async def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    write_pair(tmp_path)
    with listen("localhost", 0, "a test", shared=True) as ours:
        at = Listening(host="localhost", port=ours.getsockname()[1], directory=tmp_path)
        worker = await WorkerProcess.start(WORKER, task_at(at))
        assert await worker.serves() is None

        worker.dismiss()  # as the kernel does when a process is killed

        async with asyncio.timeout(PATIENCE):
            assert await worker.ended() == "it exited with 0"
