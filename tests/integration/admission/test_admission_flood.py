"""The memory of a webhook server under a flood of strangers; `bench/flood.py` measures a minute."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tests.support.flood import flood, flooded_server

PEAK_MEBIBYTES: Final = 256
"""Half of what the charts permit."""
KEPT_MEBIBYTES: Final = 30
FORGOTTEN_SECONDS: Final = 60.0


@pytest.mark.timeout(150)
async def test_a_mixed_flood_costs_half_of_the_limit_of_the_chart_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with flooded_server(tmp_path) as server:
        assert await server.is_served()
        before = server.mebibytes()
        await flood(server, seconds=3)
        assert [await server.is_served() for _ in range(5)] == [True] * 5
        assert server.peak_mebibytes < PEAK_MEBIBYTES
        async with asyncio.timeout(FORGOTTEN_SECONDS):
            while server.mebibytes() > before + KEPT_MEBIBYTES:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.2)
