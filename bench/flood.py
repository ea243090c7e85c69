"""The memory of a webhook server during and after a flood: `python -m bench flood [--seconds 60]`.

The flood is mixed: idle connections, begun requests, bodies that are too large, deep, dense or
never completed. The limit of the charts is 512Mi.
"""

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.flood import flood, flooded_server

REST_SECONDS = 30.0
PEAK_TARGET, REST_TARGET = 256.0, 150.0


def main() -> None:
    """Print the memory before, at most during, and after the flood."""
    parser = argparse.ArgumentParser(prog="python -m bench flood")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rest", type=float, default=REST_SECONDS)
    given = parser.parse_args()
    asyncio.run(_measure(given.seconds, given.rest))


async def _measure(seconds: float, rest: float) -> None:
    with TemporaryDirectory() as folder:
        async with flooded_server(Path(folder)) as server:
            await server.is_served()
            before = server.mebibytes()
            await flood(server, seconds)
            await asyncio.sleep(rest)
            after = server.mebibytes()
            served = sum([await server.is_served() for _ in range(20)])
    print(f"before        {before:6.0f} MiB")
    print(f"at most       {server.peak_mebibytes:6.0f} MiB   target {PEAK_TARGET:.0f}")
    print(f"after {rest:.0f} s    {after:6.0f} MiB   target {REST_TARGET:.0f}")
    print(f"newcomers     {served:6d} of 20 served")
