"""A Garden comes up by an operator with the permissions of its chart and no others."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import API_VERSION, KIND, OperatorConfiguration, configuration_from
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.health import check, progressing
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.operator.app import serve
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox.directory import write
from pergola.sandbox.simulated import Site
from pergola.testing.crds import install_operator_crds
from pergola.testing.gardens import MINIMAL
from pergola.testing.operator_chart import ACCOUNT, OperatorChart
from pergola.testing.service_accounts import request_token, until_allowed
from pergola.testing.waiting import until

pytestmark = pytest.mark.timeout(900)  # a virtual control plane starts

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
SERVER: Final = Key("garden", "virtual-garden-kube-apiserver")
PATIENCE: Final = 600.0
# The operator runs in the process of the test.
LEFT_OUT: Final = {"Deployment", "NetworkPolicy"}


@pytest.fixture
async def kubeconfig(garden_world: Site) -> Path:
    """A kubeconfig of the operator's ServiceAccount, where the chart was applied."""
    client = garden_world.client
    await install_operator_crds(client)
    for obj in OperatorChart.rendered(CHART).objects:
        if obj["kind"] not in LEFT_OUT:
            await client.apply(obj, manager="test", force=True)
    token = await request_token(load(garden_world.sandbox.kubeconfig), *ACCOUNT)
    file = write_kubeconfig(garden_world, token)
    async with Client.connect(load(file)) as operator:
        await until_allowed(operator, SECRET, ACCOUNT.namespace)
        await until_allowed(operator, GARDEN)
    return file


def write_kubeconfig(site: Site, token: str) -> Path:
    content: Any = parse(Path(site.sandbox.kubeconfig).read_text())
    content["users"][0]["user"] = {"token": token}
    return write(site.directory / "operator.kubeconfig", dump(content))


@asynccontextmanager
async def process(site: Site, config: OperatorConfiguration) -> AsyncIterator[None]:
    environment = {"WEBHOOK_MODE": "url", "WEBHOOK_URL": "127.0.0.1"}
    serving = asyncio.create_task(serve(config, garden_webhooks, environment, reach=site.reach))
    try:
        yield
    finally:
        serving.cancel()
        [outcome] = await asyncio.gather(serving, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError), outcome


async def test_nothing_is_refused_while_a_garden_comes_up(
    garden_world: Site, kubeconfig: Path
) -> None:
    config = configuration(kubeconfig)
    async with process(garden_world, config):
        await garden_world.client.create(MINIMAL)
        await until(garden_world.client, DEPLOYMENT, SERVER, is_rolled_out, patience=PATIENCE)
        counted = await metrics(config.server.metrics.port)

    requests = [line for line in counted.splitlines() if line.startswith("rest_client_requests")]
    assert any('code="200"' in line for line in requests)
    assert [line for line in requests if 'code="403"' in line] == []


def is_rolled_out(deployment: JsonObject) -> bool:
    return check(deployment) is None and progressing(deployment) is None


async def metrics(port: int) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as response,
    ):
        return await response.text()


def configuration(kubeconfig: Path) -> OperatorConfiguration:
    free: JsonObject = {"bindAddress": "127.0.0.1", "port": 0}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        metrics_port = probe.getsockname()[1]
    return configuration_from(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "runtimeClientConnection": {"kubeconfig": str(kubeconfig)},
            "server": {
                "webhooks": free,
                "healthProbes": free,
                "metrics": {**free, "port": metrics_port},
            },
        }
    ).config
