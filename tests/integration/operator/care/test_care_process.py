"""The operator's process runs care while it is the leader."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pergola.api.kinds import SECRET
from pergola.api.marks import OPERATOR_IGNORE
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import API_VERSION, KIND, OperatorConfiguration, configuration_from
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.gardener_access import INTERNAL
from pergola.kube.client import Client
from pergola.manifests.shoot_access import requests_token
from pergola.operator.app import serve
from pergola.operator.conditions import condition_of
from pergola.resource_manager.registration import garden_webhooks
from pergola.sandbox import Sandbox
from tests.support.care_site import CareSite
from tests.support.operator_site import OperatorSite


@pytest.fixture
def kubeconfig_of_garden(garden_sandbox: Sandbox) -> bytes:
    """Return the kubeconfig of the sandbox, which is the virtual cluster, too."""
    return Path(garden_sandbox.kubeconfig).read_bytes()


@pytest.fixture
async def access(runtime: Client, kubeconfig_of_garden: bytes) -> AsyncIterator[None]:
    """Provide access to the virtual cluster in the Secret where the operator expects it."""
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": INTERNAL, "namespace": "garden", "labels": requests_token()},
        "data": {"kubeconfig": base64.b64encode(kubeconfig_of_garden).decode()},
    }
    await runtime.create(secret)
    yield
    await runtime.delete(SECRET, Key.of(secret))


@asynccontextmanager
async def process(sandbox: Sandbox, client: Client) -> AsyncIterator[None]:
    """Run the operator's process on free ports."""
    environment = {"WEBHOOK_MODE": "url", "WEBHOOK_URL": "127.0.0.1"}
    serving = asyncio.create_task(serve(_config(sandbox), garden_webhooks, environment))
    try:
        yield
    finally:
        serving.cancel()
        [outcome] = await asyncio.gather(serving, return_exceptions=True)
        await OperatorSite(client).unregister()
    assert isinstance(outcome, asyncio.CancelledError), outcome


async def test_the_process_reports_the_health_of_a_garden_even_if_it_is_ignored(
    care_site: CareSite, garden_sandbox: Sandbox, access: None
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    ignored = {"metadata": {"annotations": {OPERATOR_IGNORE: "true"}}}
    await care_site.client.patch(GARDEN, care_site.garden, ignored)
    async with process(garden_sandbox, care_site.client):
        garden = await care_site.until_healthy()
    available = condition_of(garden, "VirtualGardenAPIServerAvailable")
    assert available["reason"] == "HealthzRequestSucceeded"
    assert garden["status"]["lastOperation"]["description"] == "Test"


def _config(sandbox: Sandbox) -> OperatorConfiguration:
    free: JsonObject = {"bindAddress": "127.0.0.1", "port": 0}
    return configuration_from(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "runtimeClientConnection": {"kubeconfig": str(sandbox.kubeconfig)},
            "server": {"webhooks": free, "healthProbes": free, "metrics": free},
        }
    ).config
