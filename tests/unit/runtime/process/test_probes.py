import asyncio
import re
import socket

import aiohttp
import pytest

from pergola.runtime.metrics import Metrics
from pergola.runtime.process import endpoints as probes
from pergola.runtime.process.endpoints import Check, Notice, serve_metrics, serve_probes
from pergola.runtime.process.listening import ListenError
from pergola.runtime.process.options import Address


async def get(port: int, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


def well() -> None:
    return None


async def well_later() -> None:
    await asyncio.sleep(0)


def ill() -> str:
    return "not synced for 3m"


async def ill_later() -> str:
    await asyncio.sleep(0)
    return "not synced"


def broken() -> None:
    raise RuntimeError("boom")


def broken_without_words() -> None:
    raise KeyError


@pytest.mark.parametrize("check", [well, well_later])
async def test_a_process_with_successful_checks_is_alive_and_ready(check: Check) -> None:
    async with serve_probes(Address("127.0.0.1", 0), {"a": check}, {"b": check}) as port:
        assert await get(port, "/healthz") == (200, "ok")
        assert await get(port, "/healthz/") == (200, "ok")
        assert await get(port, "/readyz") == (200, "ok")
        assert await get(port, "/healthz?verbose") == (
            200,
            "[+]ping ok\n[+]a ok\nhealthz check passed\n",
        )
        assert await get(port, "/readyz?verbose") == (200, "[+]b ok\nreadyz check passed\n")


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (ill, "not synced for 3m"),
        (ill_later, "not synced"),
        (broken, "boom"),
        (broken_without_words, "KeyError"),
    ],
)
async def test_a_failed_check_is_reported_with_its_reason(check: Check, reason: str) -> None:
    async with serve_probes(Address("127.0.0.1", 0), {"a": check, "b": well}, {}) as port:
        assert await get(port, "/healthz") == (
            500,
            f"[+]ping ok\n[-]a failed: {reason}\n[+]b ok\nhealthz check failed\n",
        )
        assert await get(port, "/readyz") == (200, "ok")


async def test_each_check_has_its_own_path() -> None:
    async with serve_probes(Address("127.0.0.1", 0), {"a-b": ill}, {"c": well}) as port:
        assert await get(port, "/healthz/ping") == (200, "ok")
        assert await get(port, "/healthz/a-b") == (500, "a-b failed: not synced for 3m\n")
        assert await get(port, "/readyz/c") == (200, "ok")
        assert (await get(port, "/readyz/ping"))[0] == 404
        assert (await get(port, "/other"))[0] == 404


async def test_an_informational_check_is_shown_but_fails_only_its_own_path() -> None:
    async with serve_probes(Address("127.0.0.1", 0), {"a": well, "b": Notice(ill)}, {}) as port:
        assert await get(port, "/healthz") == (200, "ok")
        assert await get(port, "/healthz?verbose") == (
            200,
            "[+]ping ok\n[+]a ok\n[!]b failed: not synced for 3m\nhealthz check passed\n",
        )
        assert (await get(port, "/healthz/b"))[0] == 500


async def test_a_check_can_be_excluded() -> None:
    async with serve_probes(Address("127.0.0.1", 0), {"a": ill, "b": ill}, {}) as port:
        assert await get(port, "/healthz?exclude=a&exclude=b") == (200, "ok")
        assert (await get(port, "/healthz?exclude=a"))[0] == 500


async def test_a_check_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "CHECK_SECONDS", 0.05)
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    async with serve_probes(Address("127.0.0.1", 0), {"a": hang, "b": hang}, {}) as port:
        status, text = await get(port, "/healthz")
    assert status == 500
    assert text.count("failed: no result within 0.05 seconds") == 2
    assert ended.is_set()


async def test_a_timeout_inside_a_check_is_reported_as_an_error_of_the_check() -> None:
    async def unanswered() -> str | None:
        raise TimeoutError("the disk did not answer")

    async with serve_probes(Address("127.0.0.1", 0), {"a": unanswered}, {}) as port:
        _, text = await get(port, "/healthz")
    assert "failed: the disk did not answer" in text


async def test_checks_run_on_each_request() -> None:
    state = ["early"]

    def check() -> str | None:
        return state[0] or None

    async with serve_probes(Address("127.0.0.1", 0), {}, {"a": check}) as port:
        assert (await get(port, "/readyz"))[0] == 500
        state[0] = ""
        assert (await get(port, "/readyz"))[0] == 200


async def test_an_empty_address_listens_on_all_with_one_port() -> None:
    async with serve_probes(Address("", 0), {}, {}) as port:
        assert await get(port, "/healthz") == (200, "ok")


async def test_a_port_in_use_is_reported_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as failure:
            async with serve_probes(Address("127.0.0.1", port), {}, {}):
                pass
    assert str(failure.value) == (
        f"cannot listen on 127.0.0.1:{port} for health probes:"
        " another process listens there; end it or choose another port"
    )


@pytest.mark.parametrize(
    ("bind", "port", "problem"),
    [
        ("192.0.2.1", 0, "192.0.2.1:0 for metrics: this machine has no such address"),
        ("no such host", 0, "no such host:0 for metrics: "),
        ("127.0.0.1", 70000, "port 70000 for metrics: ports are 0 to 65535"),
    ],
)
async def test_an_invalid_address_is_reported_in_one_sentence(
    bind: str, port: int, problem: str
) -> None:
    with pytest.raises(ListenError, match=re.escape(f"cannot listen on {problem}")):
        async with serve_metrics(Address(bind, port), Metrics()):
            pass


async def test_the_port_is_free_again_afterwards() -> None:
    async with serve_probes(Address("127.0.0.1", 0), {}, {}) as port:
        pass
    async with serve_probes(Address("127.0.0.1", port), {}, {}) as again:
        assert again == port


async def test_metrics_are_served_in_the_format_of_prometheus() -> None:
    metrics = Metrics()
    metrics.controller("health").observe("success", 0.1)
    async with serve_metrics(Address("127.0.0.1", 0), metrics) as port:
        url = f"http://127.0.0.1:{port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            text = await response.text()
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'reconcile_total{controller="health",result="success"} 1.0' in text


@pytest.mark.parametrize("path", ["/debug/pprof/", "/debug/pprof/profile", "/debug/tasks"])
async def test_profiles_are_not_served_by_default(path: str) -> None:
    async with serve_metrics(Address("127.0.0.1", 0), Metrics()) as port:
        assert (await get(port, path))[0] == 404


async def test_tasks_and_costs_are_served_if_profiling_is_enabled() -> None:
    async def spin_visibly() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.001)

    task = asyncio.create_task(spin_visibly(), name="the-spinner")
    try:
        async with serve_metrics(Address("127.0.0.1", 0), Metrics(), profiling=True) as port:
            assert "/debug/tasks" in (await get(port, "/debug/pprof/"))[1]
            tasks = (await get(port, "/debug/tasks"))[1]
            status, profile = await get(port, "/debug/pprof/profile?seconds=0.1")
    finally:
        task.cancel()
    assert "the-spinner" in tasks
    assert status == 200
    assert "spin_visibly" in profile


async def test_profiles_are_taken_one_at_a_time() -> None:
    async with serve_metrics(Address("127.0.0.1", 0), Metrics(), profiling=True) as port:
        path = "/debug/pprof/profile?seconds=0.2"
        answers = await asyncio.gather(get(port, path), get(port, path))
        assert sorted(status for status, _ in answers) == [200, 409]
        assert (await get(port, path))[0] == 200


@pytest.mark.parametrize("seconds", ["x", "0", "-1", "301", "nan"])
async def test_the_length_of_a_profile_is_limited(seconds: str) -> None:
    async with serve_metrics(Address("127.0.0.1", 0), Metrics(), profiling=True) as port:
        status, text = await get(port, f"/debug/pprof/profile?seconds={seconds}")
    assert (status, text) == (400, "seconds must be a number from 0 to 300\n")


async def test_idle_connections_neither_keep_probes_out_nor_pile_up() -> None:
    async with serve_probes(Address("127.0.0.1", 0), {}, {}) as port:
        idle = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * probes.CONNECTIONS)
        ]
        assert await get(port, "/healthz") == (200, "ok")
        async with asyncio.timeout(10):
            for reader, _ in idle[: 2 * probes.CONNECTIONS]:
                assert await reader.read() == b""
        assert not idle[-1][0].at_eof()
        for _, writer in idle:
            writer.close()


async def test_a_port_is_free_after_a_failure() -> None:
    with pytest.raises(RuntimeError):
        async with serve_probes(Address("127.0.0.1", 0), {}, {}) as port:
            raise RuntimeError
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
