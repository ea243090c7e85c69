"""`pergola up`, end to end, as a new user runs it."""

import asyncio
import os
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import takewhile
from pathlib import Path

import pytest

from pergola.cli.up.chapters import AROUND, CONTROL_PLANE, EXTENSIONS, RESOURCES
from pergola.sandbox import binaries, find

PATIENCE = 600.0  # seconds; everything starts from scratch, including the control plane
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
    """Yield a function that starts the command, and kill what a failed test left running."""
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


async def test_once_shows_everything_and_leaves_nothing_behind(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--once", "--only", "resources", "--name", name)
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    printed = output.decode()
    assert process.returncode == 0, printed
    for text in (
        f"1/4 {CONTROL_PLANE}",
        f"2/4 {RESOURCES}",
        "default/shop-platform",
        "default/shop-web",
        "All applied, healthy and rolled out",
        "Edited ConfigMap shop/web-features: reverted after",
        "Deleted ConfigMap shop/web-features: restored after",
        f"3/4 {EXTENSIONS}",
        "Token for system:serviceaccount:shop:web",
        "NetworkPolicies of Service shop/web: egress-to-web-tcp-http",
        "A Pod without a seccomp profile got RuntimeDefault",
        "ready  pattern 1: Pergola creates everything",
        "ready  pattern 5: the user provides VPC and security group",
        "2 NAT gateways",
        f"4/4 {AROUND}",
        "The dashboard answers",
        "All chapters succeeded.",
    ):
        assert text in printed
    assert [word for word in ("ERROR", "WARN", "Traceback", "\x1b") if word in printed] == []
    assert max(map(len, printed.splitlines())) <= 80
    assert len(printed.splitlines()) < 100
    assert find(name) is None
    assert not log_of(name).exists()


def log_of(name: str) -> Path:
    return binaries.cache().with_name(f"{name}.log")


@pytest.mark.soak("commands")
async def test_the_commands_of_each_chapter_work_in_another_terminal(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--only", "resources", "--name", name)
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            lines.append(line.decode().rstrip("\n"))
            if "Everything keeps running" in lines[-1]:
                break
        for script in scripts(lines):
            shell = await asyncio.create_subprocess_exec(
                *("/bin/bash", "-ec", script),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await shell.communicate()
            assert shell.returncode == 0, f"{script}\n{output.decode()}"
        process.send_signal(signal.SIGTERM)
        rest = (await process.stdout.read()).decode()
        assert await process.wait() == 0
    assert rest.strip() == "Stopping: all that was started here ends now."
    assert find(name) is None


def scripts(lines: list[str]) -> list[str]:
    """Return the commands that each chapter suggests, without those that run until interrupted."""
    texts = "\n".join(lines).split("Try it, in another terminal:\n")[1:]
    commands = [
        list(takewhile(lambda line: line.startswith("      "), t.split("\n"))) for t in texts
    ]
    assert len(commands) == 4
    kubectl = shutil.which("kubectl")
    return [
        "\n".join(
            line
            for line in chapter
            if "dashboard" not in line and (kubectl or not line.strip().startswith("kubectl"))
        )
        for chapter in commands
    ]


async def test_an_interrupted_once_is_not_a_success(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--once", "--only", "resources", "--name", name)
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        await process.stdout.readuntil(CONTROL_PLANE.encode())
        process.send_signal(signal.SIGTERM)
        output, _ = await process.communicate()
    assert process.returncode == 130, output.decode()
    assert find(name) is None
    assert not log_of(name).exists()


@pytest.mark.soak("commands")
async def test_up_runs_until_it_is_interrupted_and_leaves_nothing_behind(start: Start) -> None:
    name = f"up-{uuid.uuid4().hex[:8]}"
    process = await start("up", "--only", "resources", "--name", name)
    assert process.stdout is not None
    kubeconfig = Path()
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            text = line.decode().strip()
            if text.startswith("export KUBECONFIG="):
                kubeconfig = Path(text.partition("=")[2])
            if "Everything keeps running" in text:
                break
        assert kubeconfig.is_file()
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        await process.stdout.read()
        assert await process.wait() == 0
    assert not kubeconfig.parent.exists()
    assert find(name) is None


async def test_a_folder_without_manifests_is_reported_in_one_sentence(
    start: Start, tmp_path: Path
) -> None:
    process = await start("up", "--once", "--examples", str(tmp_path), "--name", "up-nothing")
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert process.returncode == 1
    log = log_of("up-nothing")
    last = output.decode().splitlines()[-1]
    assert last == f"pergola: {RESOURCES}: no *.yaml files in {tmp_path}; the log is {log}"
    assert "Traceback" not in output.decode()
    assert f"no *.yaml files in {tmp_path}" in log.read_text()
    log.unlink()
    assert find("up-nothing") is None


@pytest.mark.parametrize("arguments", COMMANDS)
async def test_every_command_has_help(start: Start, arguments: tuple[str, ...]) -> None:
    process = await start(*arguments, "--help")
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert "Usage: pergola" in output.decode()


async def test_the_error_about_an_unknown_command_names_the_known_ones(start: Start) -> None:
    process = await start("nonsense")
    output, _ = await process.communicate()
    assert process.returncode != 0
    assert "resource-manager" in output.decode()
