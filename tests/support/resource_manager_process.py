"""The resource manager as a process that a test starts."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from pergola.api.objects import JsonObject
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import World

_PERGOLA: Final = Path(sys.executable).parent / "pergola"


def configuration(kubeconfig: Path, **fields: object) -> JsonObject:
    """Return a configuration with unused ports."""
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "sourceClientConnection": {"kubeconfig": str(kubeconfig)},
        "targetClientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "server": {
            "healthProbes": {"bindAddress": "127.0.0.1", "port": 0},
            "metrics": {"bindAddress": "127.0.0.1", "port": 0},
        },
        **fields,
    }


@dataclass
class Running:
    """A process that serves."""

    process: asyncio.subprocess.Process
    health: str
    metrics: str


async def end(
    config: JsonObject | str, folder: Path, *arguments: str, **environment: str
) -> tuple[int, str]:
    """Run a process that is expected to end, and return its exit code and output."""
    path = folder / "config.yaml"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        _PERGOLA,
        "resource-manager",
        *(arguments or ("--config", str(path))),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


@asynccontextmanager
async def running(config: JsonObject, folder: Path, **environment: str) -> AsyncIterator[Running]:
    """Run a process until the block ends."""
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        _PERGOLA,
        "resource-manager",
        "--config",
        str(path),
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            async for line in process.stderr:
                record = json.loads(line)
                if "health_port" in record:
                    break
        drain = asyncio.create_task(process.stderr.read())
        yield Running(
            process,
            f"http://127.0.0.1:{record['health_port']}",
            f"http://127.0.0.1:{record['metrics_port']}",
        )
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0
            await drain
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def only(world: World, kubeconfig: Path, **fields: object) -> JsonObject:
    """Return a configuration restricted to the world's namespace."""
    config = configuration(kubeconfig, **fields)
    config["sourceClientConnection"]["namespace"] = world.namespace
    return config


async def get(url: str) -> tuple[int, str]:
    """Return the status and text of an answer."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def eventually(url: str, status: int, *parts: str, without: str = "") -> str:
    """Wait for an answer with a status, all parts of a text, and not another; return its text."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found, text = await get(url)
            is_absent = not without or without not in text
            if found == status and is_absent and all(part in text for part in parts):
                return text
            await asyncio.sleep(0.1)
