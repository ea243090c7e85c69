"""`pergola aws show`: managed and user-provided resources, as they are in AWS."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest
import yaml

from pergola.api.objects import JsonObject
from pergola.cli.aws.show import show
from pergola.cli.aws.subject import Account, Source
from pergola.cloud.aws import AwsClient
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources import iam, key_pair
from pergola.sandbox.aws.corrections import CorrectedAws
from tests.support.aws.steps import TECHNICAL_ID, StepsOf


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


async def shown(
    aws: CorrectedAws,
    cluster: StepsOf,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    output: Literal["tree", "svg"] = "tree",
) -> str:
    """Run the command, check that it writes nothing to AWS, and return its output."""
    infrastructure: JsonObject = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "metadata": {"name": "web", "namespace": TECHNICAL_ID},
        "spec": {
            "type": "aws",
            "region": cluster.client.region,
            "providerConfig": cluster.raw,
        },
        "status": {"state": keys.state_object(cluster.saved)},
    }
    file = path / "infrastructure.yaml"
    file.write_text(yaml.safe_dump(infrastructure))
    aws.taken()
    capsys.readouterr()
    account = Account(endpoint_url=aws.url)
    await asyncio.to_thread(show, source=Source(file=str(file)), account=account, output=output)
    assert aws.writes() == []
    return capsys.readouterr().out


async def test_managed_resources_are_shown_in_their_place(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = await StepsOf.managed(client, zones=("a", "b"))
    await cluster.ensure(iam.steps, key_pair.steps)

    printed = await shown(aws, cluster, tmp_path, capsys)

    network = cluster.network
    for name in (network.id, network.gateway, *network.nats.values(), *network.workers.values()):
        assert name in printed
    assert f"zone {client.region}b" in printed
    assert f"IAM role {TECHNICAL_ID}-nodes [ours]" in printed


async def test_a_browser_can_show_the_network(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = await StepsOf.managed(client)
    printed = await shown(aws, cluster, tmp_path, capsys, "svg")
    assert printed.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert cluster.network.workers["a"] in printed
