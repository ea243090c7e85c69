"""Fixtures: an extension resource with its actuator, and a client that records requests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    WatchedClient,
    extension_site,
    recording_actuator,
)


@pytest.fixture
async def site(cluster_client: Client, namespace: str) -> AsyncIterator[ExtensionSite]:
    """Yield a control plane namespace for one extension resource of a new type."""
    found = await extension_site(cluster_client, namespace)
    yield found
    await found.clean_up()


@pytest.fixture
async def recorder(kubeconfig: Path) -> AsyncIterator[WatchedClient]:
    """Yield a client that records its writes and keeps its patches and reads."""
    async with WatchedClient.connect(load(kubeconfig)) as client:
        yield client


@pytest.fixture
def actuator(site: ExtensionSite) -> RecordingActuator:
    """Return an actuator of the site's type that records its runs."""
    return recording_actuator(site.type)
