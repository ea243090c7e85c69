"""`examples/network/demo.py` does what the README says, for each network."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import pytest

from pergola.kube.client import Client
from pergola.sandbox import Sandbox
from tools.soak import in_soak

EXAMPLE: Final = Path(__file__).parents[4] / "examples" / "network" / "demo.py"


@pytest.mark.parametrize("plugin", in_soak("commands", ["gardenet", "calico", "cilium"]))
async def test_the_demo_shows_the_creation_change_and_deletion_of_a_network(
    plugin: str, kubeconfig: Path, shoot: Client, shoot_sandbox: Sandbox
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE,
        plugin,
        "--kubeconfig",
        kubeconfig,
        "--shoot-kubeconfig",
        shoot_sandbox.kubeconfig,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = output.decode()
    assert process.returncode == 0, said
    assert "Create Succeeded" in said
    assert "-config: healthy" in said
    assert ": 3 ready" in said
    assert "Reconcile Succeeded" in said
    assert ": generation 2, rolled out" in said
    assert "the Network is gone, and 0 ManagedResources are left" in said
