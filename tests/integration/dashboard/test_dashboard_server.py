"""`pergola dashboard-server` as a process."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from pergola.kube.kubeconfig import load
from tests.support.admission_site import write_pair
from tests.support.ports import held_port
from tests.support.service_accounts import request_token

pytestmark = pytest.mark.timeout(600)

PATIENCE: Final = 120.0


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a browser that trusts the certificate of the page."""
    context = ssl.create_default_context(cadata=write_pair(tmp_path).decode())
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as opened:
        yield opened


async def test_the_process_becomes_ready_lets_people_sign_in_and_ends_on_a_signal(
    kubeconfig: Path, namespace: str, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    with held_port() as page, held_port() as health:
        options = {
            "host": "localhost",
            "cert-dir": tmp_path,
            "name": "garden",
            "kubeconfig": kubeconfig,
            "bind": "127.0.0.1",
            "port": page,
            "health-port": health,
            "metrics-port": 0,
        }
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "pergola",
            "dashboard-server",
            *(f"--{name}={value}" for name, value in options.items()),
        )
        try:
            await until_ready(session, f"http://127.0.0.1:{health}/readyz", process)
            url = f"https://localhost:{page}"
            token = await request_token(load(kubeconfig), namespace, "default")
            async with session.post(f"{url}/sign-in", json={"token": token}) as answer:
                assert answer.status == 204
            async with session.get(f"{url}/api/cluster") as answer:
                assert (await answer.json())["cluster"] == "garden"
            process.terminate()
            async with asyncio.timeout(PATIENCE):
                assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def until_ready(
    session: aiohttp.ClientSession, url: str, process: asyncio.subprocess.Process
) -> None:
    async with asyncio.timeout(PATIENCE):
        while process.returncode is None:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
    raise AssertionError(f"it ended with {process.returncode}")
