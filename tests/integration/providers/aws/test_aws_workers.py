"""Workers on AWS with the real machine-controller-manager, instances in a simulated AWS, nodes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET
from pergola.api.objects import map_at
from pergola.cloud.aws import AwsClient
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.testing.crds import serve
from pergola.testing.waiting import running
from tests.support.aws.worker_site import WorkerSite
from tests.support.machine_controllers import MachineControllers, joining_nodes, serve_machines

ZONES: Final = ("eu-west-1a", "eu-west-1b", "eu-west-1c")


@pytest.fixture
async def site(
    cluster_client: Client,
    namespace: str,
    kubeconfig: Path,
    aws: CorrectedAws,
    client: AwsClient,
    tmp_path: Path,
) -> AsyncIterator[WorkerSite]:
    await serve(cluster_client, *load(SHOOT_EXTENSIONS))
    await serve_machines(cluster_client)
    controllers = MachineControllers(tmp_path, kubeconfig, namespace, aws.url)
    found = await WorkerSite.open(cluster_client, namespace, client, controllers)
    async with joining_nodes(cluster_client, namespace):
        await found.controllers.start()
        yield found
        await found.controllers.stop()
    await found.clean_up()


async def test_machines_are_made_and_removed(site: WorkerSite) -> None:
    actuator = await site.create_worker()
    async with running(site.unit(actuator)):
        worker = await site.until_reconciled()

        instances = await site.instances()
        assert len(instances) == 3
        assert {each["Placement"]["AvailabilityZone"] for each in instances.values()} == set(ZONES)
        assert set(instances) == set(await site.names(MACHINE))
        status = map_at(worker, "status")
        assert [each["name"] for each in status["machineDeployments"]] == [
            f"{site.namespace}-pool-a-z{zone}" for zone in (1, 2, 3)
        ]

        await site.delete()
        await site.until_gone()

    assert await site.instances() == {}
    for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_CLASS):
        assert await site.names(kind) == []
    labels = "gardener.cloud/purpose=machineclass"
    assert await site.client.list(SECRET, site.namespace, labels=labels) == []
