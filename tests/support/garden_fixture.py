"""The fixture of a cluster for one test in which a Garden comes up without root."""

import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pergola.sandbox.process_node import NodeSettings
from pergola.sandbox.simulated import NAMESPACE, Site, SiteSettings, garden_site


@pytest.fixture
async def garden_world() -> AsyncIterator[Site]:
    """A runtime cluster with an empty namespace `garden`, which runs the pods of a Garden."""
    async with world_with() as site:
        yield site


@asynccontextmanager
async def world_with(volumes: Path | None = None) -> AsyncGenerator[Site]:
    """Run a cluster as `garden_world` does; volumes in a folder outlive it."""
    name = f"world-{os.getpid()}-{secrets.token_hex(3)}"
    async with garden_site(
        name, settings=SiteSettings(node=NodeSettings(namespace=NAMESPACE, volumes=volumes))
    ) as site:
        yield site
