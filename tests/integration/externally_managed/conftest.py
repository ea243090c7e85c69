"""What tests of InfraClusters share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.kube.kubeconfig import load
from pergola.testing.cluster_api import NEW, OLD, cluster_crd, infra_cluster_crd, install
from pergola.testing.world import RecordingClient


@pytest.fixture
async def infra_client(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    """A client of a cluster that serves InfraClusters of both contracts."""
    async with RecordingClient.connect(load(kubeconfig)) as client:
        await install(client, cluster_crd(), infra_cluster_crd(OLD), infra_cluster_crd(NEW))
        yield client
