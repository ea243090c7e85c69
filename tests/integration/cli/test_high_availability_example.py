"""The example of high availability does what its README says."""

import asyncio
import json
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "high-availability"


async def test_the_deployment_of_the_example_is_spread_over_zones() -> None:
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "pergola",
        "explain",
        "-f",
        EXAMPLE / "shop.yaml",
        "--config",
        EXAMPLE / "config.yaml",
        "-o",
        "json",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    reported = json.dumps(json.loads(output))
    for text in ("/spec/replicas", "zone-b", "topologySpreadConstraints", "tolerations"):
        assert text in reported
