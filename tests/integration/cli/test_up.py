"""`pergola up`, end to end, as a new user runs it."""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pergola.sandbox import find

PATIENCE = 600.0  # seconds; everything starts, from the control plane on
PERGOLA = Path(sys.executable).parent / "pergola"
COMMANDS = (
    (),
    ("up",),
    ("sandbox",),
    ("sandbox", "start"),
    ("resource-manager",),
    ("crds",),
    ("version",),
)


Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Yield a function that starts the command; what still runs after a failed test is killed."""
    processes = []

    async def begin(*arguments: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "COLUMNS": "200"},
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_once_shows_everything_and_leaves_nothing(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--once", "--only", "resources", "--name", name)
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    printed = output.decode()
    assert process.returncode == 0, printed
    for text in (
        "1/5 Keep 2 ManagedResources",
        "default/shop-platform",
        "default/shop-web",
        "All applied, healthy and rolled out",
        "Repaired after",
        "Secret default/access-web got a token of system:serviceaccount:shop:web",
        "Service shop/web got the NetworkPolicies egress-to-web-tcp-http, ingress-to-web-tcp-http",
        "got the profile RuntimeDefault",
        "5/5 Create infrastructure in AWS",
        "ready  pattern 1: Pergola creates everything",
        "ready  pattern 5: the user provides VPC and security group",
        "NAT gateway nat-",
    ):
        assert text in printed
    assert "ERROR" not in printed.upper().replace("SERVERERROR", "")
    assert len(printed.splitlines()) < 80
    assert find(name) is None


async def test_it_stays_up_until_it_is_interrupted_and_leaves_nothing(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--only", "resources", "--name", name)
    assert process.stdout is not None
    kubeconfig = Path()
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            text = line.decode().strip()
            if text.startswith("export KUBECONFIG="):
                kubeconfig = Path(text.partition("=")[2])
            if "get all" in text:
                break
        assert kubeconfig.is_file()
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        await process.stdout.read()
        assert await process.wait() == 0
    assert not kubeconfig.parent.exists()
    assert find(name) is None


async def test_a_folder_without_manifests_is_one_sentence(start: Start, tmp_path: Path) -> None:
    process = await start("up", "--once", "--examples", str(tmp_path), "--name", "up-nothing")
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert process.returncode == 1
    assert f"no *.yaml files in {tmp_path}" in output.decode()
    assert "Traceback" not in output.decode()
    assert find("up-nothing") is None


@pytest.mark.parametrize("arguments", COMMANDS)
async def test_every_command_has_help(start: Start, arguments: tuple[str, ...]) -> None:
    process = await start(*arguments, "--help")
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert "Usage: pergola" in output.decode()


async def test_an_unknown_command_names_the_known_ones(start: Start) -> None:
    process = await start("nonsense")
    output, _ = await process.communicate()
    assert process.returncode != 0
    assert "resource-manager" in output.decode()
