"""`examples/aws`: the demo does what its README says, with the extension as a process."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from pergola.sandbox import Sandbox

pytestmark = pytest.mark.xdist_group("shoot")

EXAMPLE = Path(__file__).parents[4] / "examples" / "aws"


@pytest.mark.soak("commands")
async def test_the_demo_plans_creates_maintains_and_deletes_a_network(
    shoot_sandbox: Sandbox,
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE / "demo.py",
        "--kubeconfig",
        shoot_sandbox.kubeconfig,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    said = output.decode()

    assert process.returncode == 0, said
    assert re.search(r"^steps: \d+ to create", said, re.MULTILINE)
    assert "\nnothing would change\n" in said
    assert "kind: InfrastructureStatus" in said
    assert re.search(r'\n  ingress:\n(    hostname: .*\n)?    ip: "?[\d.]+"?\n', said)
    assert said.rstrip().endswith("and then the Infrastructure is gone")


def test_every_manifest_is_in_the_readme() -> None:
    readme = (EXAMPLE / "README.md").read_text()

    assert all(f"`{path.name}`" in readme for path in EXAMPLE.glob("*.yaml"))
