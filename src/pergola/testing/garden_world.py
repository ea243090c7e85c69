"""A cluster for one test in which a Garden comes up without root, and the operator's process."""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.kube.yaml import parse
from pergola.operator.app import serve
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox.simulated import Site, garden_site
from pergola.testing.crds import install_operator_crds
from pergola.testing.waiting import running

_LOOPBACK: Final[JsonValue] = {"bindAddress": "127.0.0.1", "port": 0}
_EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "garden" / "garden.yaml"


@pytest.fixture
async def garden_world() -> AsyncIterator[Site]:
    """A runtime cluster with an empty namespace `garden`, which runs the pods of a Garden."""
    name = f"world-{os.getpid()}-{secrets.token_hex(3)}"
    async with garden_site(name) as site, running(*site.units):
        yield site


@asynccontextmanager
async def operating(site: Site) -> AsyncGenerator[None]:
    """Run the operator on a site while the block lasts; fail if it ends before."""
    await install_operator_crds(site.client)
    config = configuration_from(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "runtimeClientConnection": {"kubeconfig": str(site.sandbox.kubeconfig)},
            "leaderElection": {"leaderElect": False},
            "server": dict.fromkeys(("webhooks", "healthProbes", "metrics"), _LOOPBACK),
            "controllers": {
                "networkPolicy": {"concurrentSyncs": 5},
                "vpaEvictionRequirements": {"concurrentSyncs": 5},
            },
        }
    ).config
    async with asyncio.TaskGroup() as group:
        process = group.create_task(
            serve(config, garden_webhooks, site.operator_environment, reach=site.reach)
        )
        yield
        process.cancel()
        with suppress(asyncio.CancelledError):
            await process


def example() -> JsonObject:
    """Return the Garden of the examples."""
    garden = parse(_EXAMPLE.read_text())
    assert isinstance(garden, dict)
    return garden
