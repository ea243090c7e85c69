"""Fixtures: a Garden on a real API server, with components in any state a test needs."""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.world import RecordingClient
from tests.support.care_site import CareSite


@pytest.fixture
async def care_site(runtime: Client) -> AsyncIterator[CareSite]:
    """Yield the administrator's view of the cluster, which has no components at first."""
    found = CareSite(runtime)
    await found.prepare()
    yield found
    await found.clean_up()


@pytest.fixture
async def writer(garden_sandbox: Sandbox) -> AsyncIterator[RecordingClient]:
    """Yield the operator's client, which records its writes."""
    async with RecordingClient.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client
