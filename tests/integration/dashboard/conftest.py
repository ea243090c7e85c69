"""Fixtures: a dashboard over the shared cluster."""

from collections.abc import AsyncIterator

import pytest

from pergola.cli.dashboard.answers import answers
from pergola.kube.client import Client
from pergola.testing.crds import install_crds
from pergola.testing.dashboard_site import DashboardSite, dashboard_site


@pytest.fixture
async def locked(cluster_client: Client) -> AsyncIterator[DashboardSite]:
    """Yield a dashboard before anyone has signed in."""
    await install_crds(cluster_client)
    async with dashboard_site(cluster_client, answers()) as site:
        yield site


@pytest.fixture
async def site(locked: DashboardSite) -> DashboardSite:
    """Return a dashboard with a session."""
    await locked.sign_in()
    return locked
