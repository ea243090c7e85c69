"""Fixtures: a namespace whose Services the controller handles."""

from collections.abc import AsyncIterator

import pytest

from pergola.kube.client import Client
from pergola.testing.world import RecordingClient
from tests.support.policy_site import PolicySite


@pytest.fixture
async def site(
    lone_client: Client, recorder: RecordingClient, fresh: str
) -> AsyncIterator[PolicySite]:
    """Yield a handled namespace; tests start the controller."""
    async with PolicySite(lone_client, recorder, fresh) as site:
        yield site
