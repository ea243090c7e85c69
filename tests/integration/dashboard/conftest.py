"""Fixtures: dashboards over the shared cluster, for one person and for several."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.cli.dashboard.answers import answers
from pergola.cli.dashboard.networks import draw_network
from pergola.cloud.aws import AwsClient
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.kube.kubeconfig import load
from pergola.providers.aws import state as keys
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.testing.crds import install_crds, install_extension_crds, install_operator_crds
from pergola.testing.namespaces import clear_namespace, create_namespace
from tests.support.aws.fixtures import REGION, aws, client, moto_server
from tests.support.aws.gardens import KEYS
from tests.support.aws.steps import TECHNICAL_ID, StepsOf
from tests.support.chromium import ChromiumMissing, Tab, browser_tab
from tests.support.dashboard_cluster import ClusterSite, cluster_site
from tests.support.dashboard_site import DashboardSite, dashboard_site
from tests.support.lone_cluster import lone_client, lone_sandbox
from tests.support.objects import secret

__all__ = ["aws", "client", "lone_client", "lone_sandbox", "moto_server"]


@pytest.fixture
async def locked(cluster_client: Client) -> AsyncIterator[DashboardSite]:
    """Yield a dashboard to which no one has signed in."""
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
    await clear_namespace(cluster_client, name)


@pytest.fixture
async def browser() -> AsyncIterator[Tab]:
    """Yield a browser without a page; skip if there is none."""
    try:
        async with browser_tab() as opened:
            await opened.resize(1280, 800)
            yield opened
    except ChromiumMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
async def tab(browser: Tab, locked: DashboardSite) -> Tab:
    """Return a page that has opened the printed link."""
    await enter(browser, locked)
    return browser


@pytest.fixture
async def lone_tab(browser: Tab, lone_client: Client, aws: CorrectedAws) -> AsyncIterator[Tab]:
    """Yield the page of a cluster that no other test changes, with an AWS account."""
    await install_operator_crds(lone_client)
    await install_extension_crds(lone_client)
    picture = partial(draw_network, endpoint_url=aws.url)
    async with dashboard_site(lone_client, replace(answers(), picture=picture)) as site:
        await enter(browser, site)
        yield browser


async def enter(tab: Tab, site: DashboardSite) -> None:
    """Open the printed link, and wait until the page is live."""
    await tab.open(site.links[-1])
    await tab.until("document.querySelector('#live')?.className === 'on'")


@pytest.fixture
async def cluster(lone_client: Client, client: AwsClient) -> AsyncIterator[StepsOf]:
    """Yield a network in AWS, whose Infrastructure is in the cluster."""
    managed = await StepsOf.managed(client, zones=("a", "b"))
    await install_extension_crds(lone_client)
    await create_infrastructure(lone_client, managed)
    yield managed
    for kind in (INFRASTRUCTURE, SECRET):  # keep the namespace, whose deletion would take long
        await lone_client.delete(kind, Key(TECHNICAL_ID, "web"))


async def create_infrastructure(client: Client, cluster: StepsOf) -> None:
    """Create an Infrastructure with the state of a network, and the Secret of its account."""
    metadata = {"namespace": TECHNICAL_ID, "name": "web"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TECHNICAL_ID}}
    objects: list[JsonObject] = [
        secret(TECHNICAL_ID, "web", **KEYS),
        {
            "apiVersion": INFRASTRUCTURE.api_version,
            "kind": INFRASTRUCTURE.kind,
            "metadata": metadata,
            "spec": {
                "type": "aws",
                "region": REGION,
                "secretRef": metadata,
                "providerConfig": cluster.raw,
            },
        },
    ]
    with suppress(AlreadyExists):
        await client.create(namespace)
    for obj in objects:
        await client.create(obj)
    status = {"state": keys.state_object(cluster.saved)}
    key = Key(TECHNICAL_ID, "web")
    await client.patch(INFRASTRUCTURE, key, {"status": status}, subresource="status")
