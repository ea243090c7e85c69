"""`pergola extension register`: its output."""

import pytest

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.bundle.lint import lint
from pergola.cli import app
from pergola.cli.extension.options import ExtensionCommandError
from pergola.extension_api.errors import ExtensionError
from pergola.kube.yaml import parse_documents

CALICO = "pergola.providers.networking.calico:Calico"
CILIUM = "pergola.providers.networking.cilium:Cilium"
AWS = (
    "pergola.providers.aws.actuator:AwsInfrastructure",
    "pergola.providers.aws.bastion:AwsBastion",
    "pergola.providers.aws.dns:AwsDnsRecord",
    "pergola.providers.aws.backup:AwsBackupBucket",
    "pergola.providers.aws.backup:AwsBackupEntry",
    "pergola.providers.aws.control_plane.actuator:AwsControlPlane",
    "pergola.providers.aws.workers.actuator:AwsWorker",
)
IMAGE = "registry.example/pergola@sha256:" + "0" * 64
REFERENCE = "registry.example/charts/cilium:v1"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[JsonObject]:
    with pytest.raises(SystemExit, match="0"):
        app(["extension", "register", *arguments])
    documents = parse_documents(capsys.readouterr().out)
    return [document.value for document in documents if isinstance(document.value, dict)]


def kinds(documents: list[JsonObject]) -> list[str]:
    return [document["kind"] for document in documents]


def test_an_operator_gets_a_single_extension(capsys: pytest.CaptureFixture[str]) -> None:
    [document] = printed(capsys, CILIUM, "--ref", REFERENCE)
    assert document["kind"] == "Extension"
    assert document["spec"]["resources"] == [{"kind": "Network", "type": "cilium"}]
    helm = document["spec"]["deployment"]["extension"]["helm"]
    assert helm == {"ociRepository": {"ref": REFERENCE}}


def test_all_kinds_of_an_extension_are_registered_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [document] = printed(capsys, "aws", "--ref", "registry.example/charts/aws:v1")
    assert [document] == printed(capsys, *AWS, "--ref", "registry.example/charts/aws:v1")
    assert document["metadata"]["name"] == "pergola-aws"  # provider-aws is the original's
    assert document["spec"]["resources"] == [
        {"kind": "Infrastructure", "type": "aws"},
        {"kind": "Bastion", "type": "aws"},
        {"kind": "DNSRecord", "type": "aws-route53"},
        {"kind": "BackupBucket", "type": "aws"},
        {"kind": "BackupEntry", "type": "aws"},
        {"kind": "ControlPlane", "type": "aws"},
        {"kind": "Worker", "type": "aws"},
    ]


def test_only_bastions_may_read_infrastructures(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, AWS[1], "--install", IMAGE)
    [role] = [document for document in found if document["kind"] == "ClusterRole"]
    about = {
        resource: rule["verbs"] for rule in maps_at(role, "rules") for resource in rule["resources"]
    }
    assert about["infrastructures"] == ["list"]
    assert "watch" in about["bastions"]


def test_a_landscape_without_an_operator_gets_two_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = printed(capsys, CILIUM, "--ref", REFERENCE, "--format", "controller")
    assert kinds(found) == ["ControllerDeployment", "ControllerRegistration"]
    assert found[0]["helm"] == {"ociRepository": {"ref": REFERENCE}}


def test_an_image_is_the_only_required_option(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, CALICO, "--image", IMAGE)
    assert kinds(found) == ["ControllerDeployment", "ControllerRegistration"]
    assert found[0]["helm"]["rawChart"]


def test_an_extension_with_webhooks_gets_a_service_a_port_and_the_permissions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = printed(capsys, CILIUM, "--install", IMAGE, "--namespace", "extension-x")
    by_kind = {document["kind"]: document for document in found}
    service = by_kind["Service"]
    assert service["metadata"]["name"] == "gardener-extension-networking-cilium"
    port, _ = service["spec"]["ports"]
    pod = by_kind["Deployment"]["spec"]["template"]
    [container] = pod["spec"]["containers"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {"name": port["targetPort"], "containerPort": 10250, "protocol": "TCP"} in (
        container["ports"]
    )
    assert "--webhook-config-owner-namespace=extension-x" in container["args"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert "readOnly" not in mounts["/var/run/pergola/tls"]
    assert "--webhook-config-cert-dir=/var/run/pergola/tls" in container["args"]
    named = [rule for rule in maps_at(by_kind["ClusterRole"], "rules") if "resourceNames" in rule]
    assert [rule["resourceNames"] for rule in named] == [["gardener-extension-networking-cilium"]]
    secrets = [
        rule for rule in maps_at(by_kind["Role"], "rules") if rule["resources"] == ["secrets"]
    ]
    assert secrets[1]["resourceNames"] == ["gardener-extension-networking-cilium-webhooks"]
    assert lint(found, external=["ConfigMap extension-x/kube-root-ca.crt"]) == []


def test_an_extension_without_webhooks_gets_no_port_and_permissions_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = printed(capsys, CALICO, "--install", IMAGE)
    [service] = [document for document in found if document["kind"] == "Service"]
    assert [port["name"] for port in service["spec"]["ports"]] == ["metrics"]
    [deployment] = [document for document in found if document["kind"] == "Deployment"]
    [container] = map_at(deployment, "spec", "template", "spec")["containers"]
    assert [port["name"] for port in container["ports"]] == ["metrics", "health"]
    assert "admissionregistration" not in str(found)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "name an extension"),
        ((CALICO,), "say where the extension comes from: --ref"),
        ((CALICO, "--ref", "x", "--image", "y"), "say where the extension comes from: --ref"),
        ((CALICO, "--image", "x", "--format", "operator"), "needs a chart in a registry: --ref"),
        ((CALICO, "--install", "x", "--ref", "y"), "--install cannot be combined with --ref"),
        ((CALICO, CILIUM, "--ref", "x"), "one extension is registered at a time"),
    ],
)
def test_an_error_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises((ExtensionCommandError, ExtensionError), match=sentence):
        app(["extension", "register", *arguments])
