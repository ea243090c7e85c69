"""The example does what its README says."""

import asyncio
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "externally-managed"


async def test_the_example_demonstrates_all_four_features(kubeconfig: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE / "demo.py",
        "--kubeconfig",
        kubeconfig,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    said = output.decode()
    assert process.returncode == 0, said
    reasons = [line.split()[1:] for line in said.splitlines() if line.startswith("   Ready:")]
    assert reasons == [
        ["False", "(SourceNotFound)"],
        ["True", "(NetworkReady)"],
        ["True", "(NetworkReady)"],
        ["False", "(Conflict)"],
    ]
    assert "zone-a, zone-b, zone-c" in said
    assert '"mine.example.org", but the network has "api.shop.example.org"' in said
