"""`examples/network-webhook`: a provider in one file changes a seed's Network on Azure."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pergola.admission.configurations import MUTATING
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import NAMESPACE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, NotFound
from pergola.kube.yaml import parse_documents
from pergola.testing.crds import install_extension_crds
from pergola.testing.waiting import PATIENCE
from tests.support.ports import held_port

EXAMPLE = Path(__file__).parents[4] / "examples" / "network-webhook"
PERGOLA = Path(sys.executable).parent / "pergola"
REGISTRATION = Key("", "gardener-extension-provider-azure")


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture
async def provider(
    kubeconfig: Path, cluster_client: Client, namespace: str, port: int
) -> AsyncIterator[None]:
    """Run the command of the README, on another port."""
    await install_extension_crds(cluster_client)
    options = {
        "--kubeconfig": str(kubeconfig),
        "--webhook-config-mode": "url",
        "--webhook-config-url": f"127.0.0.1:{port}",
        "--webhook-config-server-port": str(port),
        "--webhook-config-namespace": namespace,
        "--health-bind-address": "127.0.0.1:0",
        "--metrics-bind-address": "127.0.0.1:0",
    }
    given = [str(EXAMPLE / "azure.py"), *(word for option in options.items() for word in option)]
    environ = {name: v for name, v in os.environ.items() if name != "LEADER_ELECTION_NAMESPACE"}
    process = await asyncio.create_subprocess_exec(
        PERGOLA,
        *("extension", "run", *given),
        stdout=asyncio.subprocess.DEVNULL,
        env=environ,
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        with suppress(NotFound):
            await cluster_client.delete(MUTATING, REGISTRATION)


@pytest.mark.usefixtures("provider")
async def test_the_backend_of_the_example_becomes_none_and_the_rest_is_unchanged(
    cluster_client: Client,
) -> None:
    text = (EXAMPLE / "manifests.yaml").read_text()
    place, network = objects(text)
    await cluster_client.create(place)
    try:
        stored = await created(cluster_client, network)
        config = network["spec"]["providerConfig"]
        assert config["backend"] == "bird"
        assert stored["spec"] == network["spec"] | {"providerConfig": config | {"backend": "none"}}
    finally:
        with suppress(NotFound):
            await cluster_client.delete(NETWORK, Key.of(network))
        await cluster_client.delete(NAMESPACE, Key.of(place))


def objects(text: str) -> list[JsonObject]:
    return [obj for d in parse_documents(text) if isinstance(obj := d.value, dict)]


async def created(client: Client, network: JsonObject) -> JsonObject:
    """Wait until the API server calls the webhook, and return the stored Network."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(ApiError):  # registered, but not reachable yet
                stored = await client.create(network, dry_run=True)
                if stored["spec"]["providerConfig"] != network["spec"]["providerConfig"]:
                    return await client.create(network)
