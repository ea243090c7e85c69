"""`examples/network/gardenet`: the commands in its README."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import DAEMON_SET
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_extension_crds
from pergola.testing.extension_site import operation
from pergola.testing.network_site import shoot_manager
from pergola.testing.waiting import until, until_gone

ROOT = Path(__file__).parents[4]
README = ROOT / "examples" / "network" / "gardenet" / "README.md"
OVERVIEW = ROOT / "examples" / "network" / "README.md"
NAMESPACE = "shoot--demo--gardenet"
KEY = Key(NAMESPACE, "my-network")
AGENTS = DAEMON_SET, Key("kube-system", "gardenet-node")


def commands(page: Path) -> list[str]:
    """Return the lines of all shell blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


@asynccontextmanager
async def started(command: str, sandbox: Sandbox) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a command of the README as a process until the block ends."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(sandbox.kubeconfig),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    words = command.removesuffix("&").split()
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def run(command: str, sandbox: Sandbox) -> str:
    """Run a command, which must succeed, and return its output."""
    async with started(command, sandbox) as process:
        printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


async def test_the_commands_of_the_example_do_what_its_readme_says(
    shoot_sandbox: Sandbox, shoot: Client
) -> None:
    extension, cluster, reconcile, *observe, delete = commands(README)
    await install_extension_crds(shoot)
    extension = extension.replace("run ", "run --metrics-bind-address=0 --health-bind-address=0 ")
    async with shoot_manager(shoot, NAMESPACE, shoot), started(extension, shoot_sandbox):
        await run(cluster, shoot_sandbox)
        printed = await run(reconcile, shoot_sandbox)
        assert printed.endswith(f"Network {KEY} is ready\n")
        assert operation(await shoot.get(NETWORK, KEY)) == ("Create", "Succeeded")
        await until(shoot, *AGENTS, lambda obj: obj["status"].get("numberReady") == 3)
        for command in observe:
            await run(command, shoot_sandbox)

        await run(delete, shoot_sandbox)
        with pytest.raises(NotFound):
            await shoot.get(NETWORK, KEY)
        await until_gone(shoot, *AGENTS)


def test_the_files_of_every_network_in_the_overview_exist() -> None:
    page = OVERVIEW.read_text()
    named = set(re.findall(r"examples/[\w/.-]+\.(?:py|yaml)", page))
    folders = set(re.findall(r"\]\((\w+/README\.md)\)", page))

    assert folders == {f"{name}/README.md" for name in ("gardenet", "calico", "cilium")}
    assert {name for name in named if not (ROOT / name).exists()} == set()
