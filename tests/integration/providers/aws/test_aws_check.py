"""`pergola aws check` against an account: findings and their fixes (spec 30 §5)."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
import yaml

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.cli.aws import check as aws_check
from pergola.cli.aws.subject import Account, AwsCheckError, Source
from pergola.cli.manifest_files import ManifestFileError
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CredentialsInvalid
from pergola.extension_api.cluster import CLUSTER
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network
from pergola.testing.crds import definition, install_extension_crds
from tests.support.cluster_api import install

REGION = "eu-west-1"
TECHNICAL_ID = "shoot--p--s"
INFRASTRUCTURE = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Infrastructure")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def infrastructure(config: JsonObject, namespace: str = TECHNICAL_ID, **spec: object) -> JsonObject:
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "metadata": {"name": "s", "namespace": namespace},
        "spec": {"type": "aws", "region": REGION, "providerConfig": config, **spec},
    }


def cluster(nodes: str = "10.180.0.0/16", namespace: str = TECHNICAL_ID) -> JsonObject:
    shoot = {"spec": {"networking": {"nodes": nodes, "ipFamilies": ["IPv4"]}}}
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": namespace},
        "spec": {"shoot": shoot, "seed": {}, "cloudProfile": {}},
    }


async def serve_infrastructures(client: Client) -> None:
    """Install the definition, unless it exists."""
    await install_extension_crds(client)
    try:
        await client.get(INFRASTRUCTURE, Key("default", "none"))
    except NotFound:
        return
    except UnknownKind:
        await install(client, definition(INFRASTRUCTURE, has_status=True))


def secret(namespace: str, **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cloudprovider", "namespace": namespace},
        "stringData": data,
    }


def written(path: Path, *objects: JsonObject) -> str:
    file = path / "infrastructure.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


async def checked(
    aws: CorrectedAws,
    resource: str = "",
    *,
    aws_credentials: str = "",
    output: Literal["text", "json"] = "text",
    **source: Any,
) -> int:
    """Run the command in a thread with a separate loop, and return its exit code."""
    account = Account(aws_credentials=aws_credentials, endpoint_url=aws.url)

    def run() -> int:
        try:
            aws_check.check(resource, source=Source(**source), output=output, account=account)
        except SystemExit as error:
            return int(str(error.code))
        return 0

    return await asyncio.to_thread(run)


async def test_a_correct_network_is_reported_as_such_and_nothing_is_written(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    config = network.config(group=await network.security_group())
    file = written(tmp_path, infrastructure(config), cluster())
    aws.taken()

    code = await checked(aws, file=file)

    assert (code, capsys.readouterr().out) == (0, "the account is ready for the cluster\n")
    assert aws.writes() == []


async def test_all_problems_are_shown_with_their_path_and_the_command_that_fixes_them(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.create(client, zones=("a", "b"), dns=False, dhcp=False)
    other = await Network.create(client, cidr="10.9.0.0/16")
    config = network.config(group=await other.security_group())
    config["networks"]["zones"][1]["name"] = f"{REGION}c"

    code = await checked(aws, file=written(tmp_path, infrastructure(config), cluster("10.0.0.0/8")))

    lines = capsys.readouterr().out.splitlines()
    errors = [line.partition(": ")[2] for line in lines if line.startswith("error: ")]
    assert code == 1
    assert [error.partition(": ")[0] for error in errors] == [
        "networks.vpc.id",
        "networks.vpc.id",
        "networks.zones[1].workersSubnetID",
        "networks.nodesSecurityGroupID",
    ]
    assert f"is in VPC {other.id}, not in {network.id}" in errors[3]
    assert all(line.startswith("  aws ec2 ") for line in lines[1::2])
    assert any(line.startswith("hint: ") for line in lines)


async def test_the_printed_commands_fix_the_problems(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    await network.dns("EnableDnsHostnames", on=False)
    await network.dhcp("example.org")
    file = written(tmp_path, infrastructure(network.config()), cluster())
    assert await checked(aws, file=file) == 1
    lines = capsys.readouterr().out
    assert f"modify-vpc-attribute --vpc-id {network.id} --enable-dns-hostnames" in lines
    assert f"associate-dhcp-options --vpc-id {network.id}" in lines

    await network.dns("EnableDnsHostnames", on=True)
    await network.dhcp(f"{REGION}.compute.internal")

    assert await checked(aws, file=file) == 0


async def test_a_correct_dual_stack_network_is_reported_as_such(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path
) -> None:
    network = await Network.complete(client, zones=("a", "b"), ipv6=True)
    without = await Network.complete(client, zones=("a", "b"))
    await client.pages("ec2", "DescribeVpcs", "Vpcs")  # the block is associated when it is read

    codes = [
        await checked(
            aws,
            file=written(
                tmp_path,
                infrastructure({**each.config(), "dualStack": {"enabled": True}}),
                cluster(),
            ),
        )
        for each in (network, without)
    ]

    assert codes == [0, 1]


async def test_missing_rules_of_a_security_group_are_a_hint_with_a_command_that_adds_them(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    group = await network.security_group(rules=False)
    file = written(tmp_path, infrastructure(network.config(group=group)), cluster())

    code = await checked(aws, file=file)
    hint, line, _ = capsys.readouterr().out.splitlines()
    _, _, permissions = line.partition("--ip-permissions ")
    await client.call(
        "ec2",
        "AuthorizeSecurityGroupIngress",
        GroupId=group,
        IpPermissions=orjson.loads(permissions.partition(" --region")[0].strip("'")),
    )
    await checked(aws, file=file)

    assert code == 0
    assert hint.startswith(f"hint: networks.nodesSecurityGroupID: security group {group} lacks ")
    assert line.startswith(f"  aws ec2 authorize-security-group-ingress --group-id {group} ")
    assert capsys.readouterr().out == "the account is ready for the cluster\n"


async def test_large_pools_without_an_overlay_need_a_higher_quota_of_routes(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    config = network.config(group=await network.security_group())
    large = cluster()
    shoot = large["spec"]["shoot"]["spec"]
    shoot["networking"]["providerConfig"] = {"overlay": {"enabled": False}}
    pool = {"zones": [f"{REGION}a", f"{REGION}b"], "maximum": 60, "maxSurge": 2}
    shoot["provider"] = {"workers": [pool]}

    code = await checked(aws, file=written(tmp_path, infrastructure(config), large))

    found, fix, _ = capsys.readouterr().out.splitlines()
    assert code == 0
    assert found.startswith("hint: networks.zones: the pools may have 62 nodes")
    assert "routes in a table, but it allows 50;" in found
    assert fix.startswith("  aws service-quotas request-service-quota-increase --service-code vpc ")


async def test_programs_get_json(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.create(client)
    file = written(tmp_path, infrastructure(network.config()), cluster("10.0.0.0/24"))

    code = await checked(aws, file=file, output="json")

    found = orjson.loads(capsys.readouterr().out)
    assert code == 1
    assert [row["field"] for row in found if row["blocks"]] == ["networks.zones[0].workersSubnetID"]
    assert all(row["fix"].startswith("aws ") for row in found)


async def test_without_the_cluster_findings_about_it_are_omitted(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = await Network.complete(client, zones=("a", "b"))

    code = await checked(aws, file=written(tmp_path, infrastructure(network.config())))

    assert code == 0
    assert "no Cluster found" in capsys.readouterr().err


async def test_the_keys_of_a_secret_in_the_same_file_are_used(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path
) -> None:
    network = await Network.complete(client, zones=("a", "b"))
    reference = {"name": "cloudprovider", "namespace": TECHNICAL_ID}
    asked = infrastructure(network.config(), secretRef=reference)
    keys = secret(TECHNICAL_ID, accessKeyID="AKIAOFTHESECRET", secretAccessKey="x")
    await aws.authenticate()

    with pytest.raises(CredentialsInvalid):
        await checked(aws, file=written(tmp_path, asked, cluster(), keys))
    with pytest.raises(AwsCheckError, match="does not contain Secret other/keys"):
        await checked(aws, file=written(tmp_path, asked), aws_credentials="other/keys")

    assert any("AKIAOFTHESECRET" in identity for identity in aws.identities)


async def test_missing_permissions_are_not_findings_and_are_reported_together(
    aws: CorrectedAws, client: AwsClient, tmp_path: Path
) -> None:
    network = await Network.create(client)
    aws.fail("DescribeSubnets", "UnauthorizedOperation", status=403)
    aws.fail("DescribeRouteTables", "UnauthorizedOperation", status=403)

    with pytest.raises(AwsCheckError, match=r"DescribeSubnets.*DescribeRouteTables"):
        await checked(aws, file=written(tmp_path, infrastructure(network.config())))


@pytest.mark.parametrize(("file", "name"), [("", ""), ("x", "y")])
async def test_a_file_or_a_name_is_required(aws: CorrectedAws, file: str, name: str) -> None:
    with pytest.raises(AwsCheckError, match="either --file or the name"):
        await checked(aws, file=file, name=name)


async def test_a_file_without_an_infrastructure_is_refused(
    aws: CorrectedAws, tmp_path: Path
) -> None:
    with pytest.raises(
        ManifestFileError, match="must contain one Infrastructure, but contains Cluster"
    ):
        await checked(aws, file=written(tmp_path, cluster()))


async def test_an_infrastructure_in_a_cluster_is_checked_with_its_secret(
    aws: CorrectedAws,
    client: AwsClient,
    cluster_client: Client,
    namespace: str,
    kubeconfig: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await serve_infrastructures(cluster_client)
    network = await Network.complete(client, zones=("a", "b"))
    reference = {"name": "cloudprovider", "namespace": namespace}
    asked = infrastructure(network.config(), namespace, secretRef=reference)
    for obj in (
        secret(namespace, accessKeyID="AKIAOFTHECLUSTER", secretAccessKey="x"),
        cluster("10.180.0.0/24", namespace),
        asked,
    ):
        await cluster_client.create(obj)

    codes = [
        await checked(aws, *named, namespace=namespace, kubeconfig=kubeconfig, name=name)
        for named, name in (((), "s"), (("infrastructure/s",), ""), (("s",), ""))
    ]

    assert codes == [1, 1, 1]
    assert "networks.zones[1].workersSubnetID" in capsys.readouterr().out
    assert any("AKIAOFTHECLUSTER" in identity for identity in aws.identities)
    await cluster_client.delete(CLUSTER, Key("", namespace))
