"""`pergola aws cloud-config` on files: spec 30 §7.2 to §7.5."""

from pathlib import Path

import orjson
import pytest
import yaml

from pergola.api.objects import JsonObject
from pergola.cli import app
from pergola.cli.aws.cloud_config import cloud_config
from pergola.cli.aws.subject import AwsCheckError, Source
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.errors import ExtensionError
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.status import full_status

EXAMPLES = Path(__file__).parents[3] / "examples" / "aws"
PRIVATE = "pattern-3-private.yaml"
BY_TAGS = {keys.zone_key("eu-west-1a", keys.SUBNET_PUBLIC): "subnet-tagged"}
PENDING = (
    "no subnet for load balancers: the status has none that is public or internal, Services of "
    "type LoadBalancer stay pending; name subnets in the configuration, or tag them with "
    "kubernetes.io/cluster/shoot--demo--private and kubernetes.io/role/elb=1 or "
    "kubernetes.io/role/internal-elb=1"
)
CONTROL_PLANE = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "ControlPlaneConfig",
    "cloudControllerManager": {"useCustomRouteController": True},
}


def reconciled(manifest: str, state: dict[str, str] | None = None) -> list[JsonObject]:
    """Return the reconciled Infrastructure of an example, and its Cluster."""
    documents = yaml.safe_load_all((EXAMPLES / manifest).read_text())
    found = {each["kind"]: each for each in documents}
    infrastructure, cluster = found["Infrastructure"], found["Cluster"]
    desired = desired_of(infrastructure, Cluster.from_object(cluster))
    infrastructure["status"] = full_status(desired, State(state))
    return [infrastructure, cluster]


def file(folder: Path, objects: list[JsonObject]) -> str:
    path = folder / "infrastructure.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def test_the_text_has_each_value_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud_config(source=Source(file=file(tmp_path, reconciled(PRIVATE))))

    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "cloud-controller-manager --configure-cloud-routes=false --controllers=*,-service",
        f"  {PENDING}",
        "aws-custom-route-controller, replicas: 0",
        "  pods communicate through an overlay, and need no routes",
        "ConfigMap shoot--demo--private/cloud-provider-config, cloudprovider.conf",
        "  [Global]",
        '  VPC="vpc-0a1b2c3d4e5f60718"',
        '  SubnetID="subnet-0aaaaaaaaaaaaaaa1"',
        "  DisableSecurityGroupIngress=true",
        '  KubernetesClusterTag="shoot--demo--private"',
        '  KubernetesClusterID="shoot--demo--private"',
        '  Zone="eu-west-1a"',
        "  # https://github.com/kubernetes/cloud-provider-aws/issues/638",
        '  NodeIPFamilies="ipv4"',
    ]
    assert printed.err == ""


def test_a_subnet_found_by_its_tags_enables_the_service_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud_config(source=Source(file=file(tmp_path, reconciled(PRIVATE, BY_TAGS))), output="json")

    found = orjson.loads(capsys.readouterr().out)
    assert found["cloudControllerManager"] == {
        "arguments": ["--configure-cloud-routes=false"],
        "reason": "subnets for load balancers: subnet-tagged (public)",
    }
    assert 'SubnetID="subnet-tagged"' in found["configMap"]["data"]["cloudprovider.conf"]


def test_the_yaml_can_be_applied_and_has_reasons_as_comments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = reconciled("pattern-2-byo.yaml")
    objects[1]["spec"]["shoot"]["spec"]["provider"]["controlPlaneConfig"] = CONTROL_PLANE

    cloud_config(source=Source(file=file(tmp_path, objects)), output="yaml")

    printed = capsys.readouterr().out
    applied = yaml.safe_load(printed)
    assert (applied["kind"], applied["metadata"]) == (
        "ConfigMap",
        {"name": "cloud-provider-config", "namespace": "shoot--demo--byo"},
    )
    assert 'SubnetID="subnet-0aaaaaaaaaaaaaaa3"' in applied["data"]["cloudprovider.conf"]
    assert "# aws-custom-route-controller, replicas: 1\n" in printed


def test_assumptions_without_a_cluster_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud_config(source=Source(file=file(tmp_path, reconciled(PRIVATE)[:1])))

    assert capsys.readouterr().err == (
        "Infrastructure shoot--demo--private/private has no Cluster with a Shoot: assuming "
        "IPv4 with an overlay\n"
    )


def test_without_a_status_the_command_asks_the_user_to_wait(tmp_path: Path) -> None:
    objects = reconciled(PRIVATE)
    del objects[0]["status"]

    with pytest.raises(
        ExtensionError,
        match=r"shoot--demo--private/private has no status\.providerStatus yet; wait",
    ):
        cloud_config(source=Source(file=file(tmp_path, objects)))


def test_a_status_without_subnets_is_reported(tmp_path: Path) -> None:
    objects = reconciled(PRIVATE)
    objects[0]["status"]["providerStatus"]["vpc"]["subnets"] = []

    with pytest.raises(
        ExtensionError,
        match=r"^Infrastructure shoot--demo--private/private: could not determine subnet",
    ):
        cloud_config(source=Source(file=file(tmp_path, objects)))


@pytest.mark.parametrize("arguments", [["infrastructure/web", "-f", "x"], ["web", "--name", "web"]])
def test_an_infrastructure_is_given_only_once(arguments: list[str]) -> None:
    with pytest.raises(AwsCheckError, match="give either --file or the name"):
        app(["aws", "cloud-config", *arguments], exit_on_error=False)


def test_only_infrastructures_are_accepted() -> None:
    with pytest.raises(AwsCheckError, match='"shoot/web" is not an Infrastructure; write infra'):
        app(["aws", "cloud-config", "shoot/web"], exit_on_error=False)


def test_the_command_requires_an_infrastructure() -> None:
    with pytest.raises(AwsCheckError, match="give either --file or the name"):
        app(["aws", "cloud-config"], exit_on_error=False)
