"""Fixtures for tests with a Worker on AWS, and machine-controller-manager for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.cloud.aws import AwsClient
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.testing.crds import install_extension_crds, serve
from tests.support.aws.worker_site import WorkerSite
from tests.support.machine_controllers import (
    MachineControllers,
    hurried_deletions,
    joining_nodes,
    serve_machines,
)


@pytest.fixture
async def stopped_worker_site(
    cluster_client: Client,
    namespace: str,
    kubeconfig: Path,
    aws: CorrectedAws,
    client: AwsClient,
    tmp_path: Path,
) -> AsyncIterator[WorkerSite]:
    """Yield a site whose machine-controller-manager does not run."""
    await install_extension_crds(cluster_client)
    await serve(cluster_client, *load(SHOOT_EXTENSIONS))
    await serve_machines(cluster_client)
    controllers = MachineControllers(tmp_path, kubeconfig, namespace, aws.url)
    found = await WorkerSite.open(cluster_client, namespace, client, controllers)
    yield found
    await found.clean_up()


@pytest.fixture
async def worker_site(stopped_worker_site: WorkerSite) -> AsyncIterator[WorkerSite]:
    """Yield a site with machine-controller-manager, and nodes for its machines."""
    site = stopped_worker_site
    async with (
        joining_nodes(site.client, site.namespace),
        hurried_deletions(site.client, site.namespace),
    ):
        await site.controllers.start()
        yield site
        await site.controllers.stop()
