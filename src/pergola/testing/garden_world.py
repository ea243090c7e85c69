"""A cluster for one test in which a Garden comes up without root."""

import os
import secrets
from collections.abc import AsyncIterator

import pytest

from pergola.sandbox.simulated import Site, garden_site
from pergola.testing.waiting import running


@pytest.fixture
async def garden_world() -> AsyncIterator[Site]:
    """A runtime cluster with an empty namespace `garden`, which runs the pods of a Garden."""
    name = f"world-{os.getpid()}-{secrets.token_hex(3)}"
    async with garden_site(name) as site, running(*site.units):
        yield site
