"""Fixtures: dashboards over the shared cluster, for one person and for several."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.cli.dashboard.answers import answers
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.testing.crds import install_crds, install_extension_crds
from pergola.testing.dashboard_cluster import ClusterSite, cluster_site
from pergola.testing.dashboard_site import DashboardSite, dashboard_site
from pergola.testing.namespaces import create_namespace, delete_namespace


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


@pytest.fixture
async def shared(
    cluster_client: Client, kubeconfig: Path, namespace: str, tmp_path: Path
) -> AsyncIterator[ClusterSite]:
    """Yield a dashboard for several people, with the rights of its chart."""
    await install_extension_crds(cluster_client)
    async with cluster_site(
        cluster_client, load(kubeconfig), namespace, tmp_path, answers()
    ) as site:
        yield site


@pytest.fixture
async def other_namespace(
    cluster_client: Client, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    """Yield a second namespace."""
    name = await create_namespace(cluster_client, f"other-{request.node.name}")
    yield name
    await delete_namespace(cluster_client, name)
