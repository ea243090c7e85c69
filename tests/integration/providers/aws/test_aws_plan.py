"""`pergola aws plan` prints what would happen, and changes nothing."""

import asyncio
import re
from base64 import b64encode
from pathlib import Path

import orjson
import pytest
import yaml

from pergola.api.objects import JsonObject
from pergola.cli.aws import plan as aws_plan
from pergola.cli.aws.subject import Account, AwsCheckError, Source
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import Cluster
from pergola.flow import Report
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import name_zones, run_steps
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.state import read_state, state_object
from pergola.providers.aws.status import full_status
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network, everything, managed_config
from tests.support.aws.site import PUBLIC_KEY, REGION, SHOOT

TECHNICAL_ID = "shoot--p--s"
CLUSTER: JsonObject = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": TECHNICAL_ID},
    "spec": {"shoot": SHOOT, "seed": {}, "cloudProfile": {}},
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def infrastructure(config: JsonObject, state: JsonObject | None = None) -> JsonObject:
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "metadata": {"name": "s", "namespace": TECHNICAL_ID},
        "spec": {
            "type": "aws",
            "region": REGION,
            "sshPublicKey": b64encode(PUBLIC_KEY.encode()).decode(),
            "providerConfig": config,
        },
        "status": {"state": state} if state else {},
    }


async def created(client: AwsClient, config: JsonObject) -> JsonObject:
    """Create the infrastructure; return its state."""
    desired = desired_of(infrastructure(config), Cluster.from_object(CLUSTER))
    state = read_state(None)
    name_zones(desired, state)
    work = Work(aws=client, desired=desired, state=state, snapshot=Snapshot(), poll_seconds=0.01)

    async def forget(_: object) -> None:
        return None

    async def unheard(_: Report) -> None:
        return None

    await run_steps("creation", reconcile_steps(desired), work, write=forget, report=unheard)
    return state_object(state.snapshot())


async def planned(
    aws: CorrectedAws,
    path: Path,
    capsys: pytest.CaptureFixture[str],
    *objects: JsonObject,
    expected: int = aws_plan.DIFFERENT,
    **flags: object,
) -> str:
    """Return the output; check the exit code, and that nothing is written."""
    file = path / "infrastructure.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    aws.taken()
    capsys.readouterr()
    code: object = 0
    try:
        await asyncio.to_thread(
            aws_plan.plan,
            source=Source(file=str(file)),
            account=Account(endpoint_url=aws.url),
            **flags,  # type: ignore[arg-type]
        )
    except SystemExit as exit_:
        code = exit_.code
    assert aws.writes() == []
    assert code == expected
    return capsys.readouterr().out


async def test_resources_of_a_new_cluster_would_be_created(
    aws: CorrectedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = (infrastructure(managed_config(REGION)), CLUSTER)

    printed = await planned(aws, tmp_path, capsys, *objects)

    assert printed.startswith("Infrastructure reconciliation\n")
    assert f"  + ensure NAT gateway in {REGION}a: " in printed
    assert re.fullmatch(r"steps: \d+ to create(, \d+ to change)?", printed.splitlines()[-1])


async def test_steps_that_change_nothing_are_counted_or_listed(
    aws: CorrectedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = (infrastructure(managed_config(REGION)), CLUSTER)
    short = await planned(aws, tmp_path, capsys, *objects)
    full = await planned(aws, tmp_path, capsys, *objects, everything=True)
    (count,) = re.findall(r"of the other steps, .*?(\d+) are skipped", short)
    assert full.count(": skip, ") == int(count) > 1


async def test_existing_resources_would_be_kept(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = managed_config(REGION)
    objects = (infrastructure(config, await created(client, config)), CLUSTER)
    before = await everything(client)

    printed = orjson.loads(
        await planned(aws, tmp_path, capsys, *objects, output="json", expected=0)
    )

    assert {step["fate"] for step in printed["steps"]} == {"keep", "skip"}
    assert all(step["why"] for step in printed["steps"])
    text = await planned(aws, tmp_path, capsys, *objects, expected=0)
    assert text.splitlines()[-1] == "nothing would change"
    assert len(text.splitlines()) == 4
    assert await everything(client) == before


async def test_it_says_what_the_control_plane_gets_from_the_network(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = managed_config(REGION)
    obj = infrastructure(config, await created(client, config))
    desired = desired_of(obj, Cluster.from_object(CLUSTER))
    obj["status"] = full_status(desired, read_state(obj["status"]["state"]))

    text = await planned(aws, tmp_path, capsys, obj, CLUSTER, expected=0)
    _, _, section = text.partition("\ncontrol plane\n")
    assert "  cloud-controller-manager --configure-cloud-routes=false\n" in section
    assert "    subnets for load balancers: subnet-" in section
    assert "  aws-custom-route-controller, replicas: 0\n" in section
    found = orjson.loads(
        await planned(aws, tmp_path, capsys, obj, CLUSTER, output="json", expected=0)
    )
    assert found["controlPlane"]["customRouteController"]["replicas"] == 0


async def test_a_cluster_that_has_lost_its_state_would_be_adopted(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = managed_config(REGION)
    await created(client, config)
    objects = (infrastructure(config), CLUSTER)

    printed = orjson.loads(await planned(aws, tmp_path, capsys, *objects, output="json"))

    changed = {each["name"] for each in printed["steps"] if each["fate"] not in ("keep", "skip")}
    assert changed == {"ensure egress ranges", "ensure key pair"}


async def test_the_plan_of_a_deletion_lists_the_resources_to_delete(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = managed_config(REGION)
    state = await created(client, config)
    objects = (infrastructure(config, state), CLUSTER)

    printed = orjson.loads(
        await planned(aws, tmp_path, capsys, *objects, delete=True, output="json")
    )

    going = " ".join(step["why"] for step in printed["steps"] if step["fate"] == "would delete")
    assert printed["flow"] == "Infrastructure deletion"
    assert state["data"]["VPC"] in going
    assert state["data"][f"Zones/{REGION}a/NATGateway"] in going


async def test_without_resources_a_deletion_would_do_nothing(
    aws: CorrectedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = (infrastructure(managed_config(REGION)), CLUSTER)

    printed = await planned(aws, tmp_path, capsys, *objects, delete=True, expected=0)

    assert "nothing was ever created, so there is nothing to do" in printed


@pytest.mark.parametrize(
    ("flags", "first"),
    [
        ({"dot": True}, "digraph"),
        ({"mermaid": True}, "flowchart LR"),
        ({"picture": True}, "Infrastructure reconciliation\n├── "),
    ],
)
async def test_the_graph_is_drawn(
    aws: CorrectedAws,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: dict[str, bool],
    first: str,
) -> None:
    objects = (infrastructure(managed_config(REGION)), CLUSTER)

    printed = await planned(aws, tmp_path, capsys, *objects, **flags)

    assert printed.startswith(first)
    assert "ensure VPC" in printed


async def test_blocking_findings_are_printed_with_their_fix(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.create(client, dns=False)

    objects = (infrastructure(network.config()), CLUSTER)
    printed = await planned(aws, tmp_path, capsys, *objects, expected=1)

    assert "aws ec2 modify-vpc-attribute" in printed
    assert printed.endswith("nothing would be done until the errors are fixed\n")


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"source": Source(file="a", name="b")},
        {"source": Source(file="a"), "dot": True, "mermaid": True},
    ],
)
def test_contradictory_options_are_refused(flags: dict[str, object]) -> None:
    with pytest.raises(AwsCheckError, match=r"give (either|only one)"):
        aws_plan.plan(**flags)  # type: ignore[arg-type]
