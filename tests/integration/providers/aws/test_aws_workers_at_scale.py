"""The requests of a Worker with 50 pools in three zones, whose machines are simulated objects."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import MACHINE_DEPLOYMENT
from pergola.extensions.workers.distribution import share
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load as load_kubeconfig
from pergola.testing.waiting import running
from pergola.testing.world import RecordingClient
from tests.support.aws.worker_site import WorkerSite
from tests.support.simulated_machines import complete, simulate_machines

POOLS, MACHINES = 50, 100
_WATCH: Final = "WATCH"
_ENDED: Final = "apiserver_terminated_watchers_total"


@pytest.fixture
async def requests(kubeconfig: Path) -> AsyncIterator[tuple[RecordingClient, list[str]]]:
    """Yield a client, and the methods of its requests; those of watches take no time."""
    found: list[str] = []
    async with RecordingClient.connect(
        load_kubeconfig(kubeconfig),
        observe=lambda method, _, __, seconds: found.append(method if seconds else _WATCH),
    ) as client:
        yield client, found


async def ended_watches(client: Client) -> float:
    """Return how many watches the API server has ended because they were slow."""
    lines = (await client.get_raw("/metrics")).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{_ENDED}{{"))


async def test_waiting_sends_no_request_and_a_run_without_a_change_few(
    stopped_worker_site: WorkerSite, requests: tuple[RecordingClient, list[str]]
) -> None:
    site, (client, sent) = stopped_worker_site, requests
    pools = site.pools(
        *(
            {"name": f"p{index}", "minimum": share(MACHINES, index, POOLS), "maximum": 3}
            for index in range(POOLS)
        )
    )
    actuator = await site.create_worker(*pools)
    async with running(site.unit(actuator, client=client)):
        await site.until(lambda worker: "machineDeployments" in worker.get("status", {}))
        deployments = await site.client.list(MACHINE_DEPLOYMENT, site.namespace)
        assert len(deployments) == 3 * POOLS
        *others, last = deployments
        ended = await ended_watches(site.client)
        assert await simulate_machines(site.client, deployments) == MACHINES
        sent.clear()
        await complete(site.client, others)
        # A busy API server ends watches whose events it cannot pass on at once.
        assert set(sent) <= {_WATCH}
        assert len(sent) <= await ended_watches(site.client) - ended
        await complete(site.client, [last])
        await site.until_reconciled()
        assert len([method for method in sent if method != _WATCH]) <= 5

        sent.clear()
        client.writes = []
        await site.annotate("reconcile")
        await site.until_reconciled()

    assert {write.split(" ")[1] for write in client.writes} == {"Worker"}
    assert len(sent) <= 20
