"""`pergola aws show`: managed and user-provided resources, as they are in AWS."""

import asyncio
from pathlib import Path
from typing import Literal

import orjson
import pytest
import yaml

from pergola.api.objects import JsonObject
from pergola.cli.aws.show import show
from pergola.cli.aws.subject import Account, Source
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import Shoot
from pergola.flow import State
from pergola.kube.yaml import parse
from pergola.providers.aws import state as keys
from pergola.providers.aws.control_plane import given
from pergola.providers.aws.resources import iam, key_pair
from pergola.providers.aws.status import provider_status
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
    output: Literal["tree", "svg", "json", "yaml"] = "tree",
) -> str:
    """Run the command, check that it writes nothing to AWS, and return its output."""
    file = path / "infrastructure.yaml"
    file.write_text(yaml.safe_dump(infrastructure(cluster)))
    aws.taken()
    capsys.readouterr()
    account = Account(endpoint_url=aws.url)
    await asyncio.to_thread(show, source=Source(file=str(file)), account=account, output=output)
    assert aws.writes() == []
    return capsys.readouterr().out


def infrastructure(cluster: StepsOf) -> JsonObject:
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "metadata": {"name": "web", "namespace": TECHNICAL_ID},
        "spec": {
            "type": "aws",
            "region": cluster.client.region,
            "providerConfig": cluster.raw,
        },
        "status": {
            "state": keys.state_object(cluster.saved),
            "providerStatus": provider_status(cluster.desired, State(cluster.saved)),
        },
    }


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


async def test_it_ends_with_what_the_control_plane_gets_from_the_network(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = await StepsOf.managed(client)
    found = given(infrastructure(cluster), Shoot({})).controllers()

    printed = await shown(aws, cluster, tmp_path, capsys)
    picture = await shown(aws, cluster, tmp_path, capsys, "svg")

    _, _, section = printed.partition("\n└── control plane\n")
    (cloud, why), (routes, why_not) = found
    assert section.splitlines() == [
        f"    ├── {cloud}",
        f"    │   └── {why}",
        f"    └── {routes}",
        f"        └── {why_not}",
    ]
    assert cluster.network.public["a"] in why
    for text, reason in found:
        assert f">{text}<" in picture
        assert f">{reason}<" in picture


async def test_programs_can_read_the_network_and_what_the_control_plane_gets(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = await StepsOf.managed(client)

    text = await shown(aws, cluster, tmp_path, capsys, "yaml")
    found = orjson.loads(await shown(aws, cluster, tmp_path, capsys, "json"))

    (vpc,) = [part for part in found["network"]["parts"] if part["kind"] == "VPC"]
    assert vpc["name"] == cluster.network.id
    assert vpc["owner"] == "the user's"
    assert {"kind": "zone", "name": f"{client.region}a"}.items() <= next(
        part.items() for part in vpc["parts"] if part["kind"] == "zone"
    )
    assert found["controlPlane"]["customRouteController"]["replicas"] == 0
    from_yaml = parse(text.encode())
    assert isinstance(from_yaml, dict)
    assert from_yaml["controlPlane"] == found["controlPlane"]
