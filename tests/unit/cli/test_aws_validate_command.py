"""`pergola aws validate` on files."""

import io
import sys
from pathlib import Path

import orjson
import pytest

from pergola.cli import app
from pergola.cli.aws.validate import validate
from pergola.cli.manifest_files import ManifestFileError

SHOOT = """
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {namespace: garden-dev, name: web}
spec:
  region: eu-west-1
  cloudProfile: {kind: CloudProfile, name: aws}
  networking: {type: calico, nodes: 10.250.0.0/16}
  provider:
    type: aws
    workers:
    - {name: w, machine: {type: m5.large}, volume: {type: gp3, size: 50Gi}, zones: [eu-west-1a]}
    infrastructureConfig:
      apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1
      kind: InfrastructureConfig
      networks:
        vpc: {id: VPC}
        zones: [{name: eu-west-1a, workersSubnetID: subnet-1}]
---
"""
PROFILE = """
apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: aws}
spec:
  regions: [{name: eu-west-1, zones: [{name: eu-west-1b}]}]
  machineTypes: [{name: m5.large}]
---
"""
INFRASTRUCTURE = """
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Infrastructure
metadata: {namespace: shoot--dev--web, name: web}
spec:
  type: aws
  providerConfig:
    apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1
    kind: InfrastructureConfig
    networks:
      vpc: {cidr: 10.250.0.0/16}
      zones: [{name: eu-west-1a, internal: 10.250.0.0/20}]
---
"""
CLUSTER = """
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Cluster
metadata: {name: shoot--dev--web}
spec:
  seed: {}
  cloudProfile: {}
  shoot: {spec: {region: eu-west-1, networking: {ipFamilies: [IPv6]}}}
"""
GOOD = SHOOT.replace("VPC", "vpc-1")
BAD = SHOOT.replace("VPC", "vpc-?")
VPC = "spec.provider.infrastructureConfig.networks.vpc.id"
ZONE = "spec.provider.infrastructureConfig.networks.zones[0]"


def file(folder: Path, content: str, name: str = "shoot.yaml") -> str:
    path = folder / name
    path.write_text(content)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_valid_shoot_is_reported_as_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(file=file(tmp_path, GOOD))

    assert printed(capsys) == ["Shoot garden-dev/web is valid"]


def test_every_finding_is_a_line_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        validate(file=file(tmp_path, BAD + PROFILE))

    assert printed(capsys) == [
        f'{VPC}: Invalid value: "vpc-?": does not match ^vpc-[a-z0-9]+$',
        f'{ZONE}.name: Unsupported value: "eu-west-1a": supported values: "eu-west-1b"',
    ]


def test_an_unknown_field_gets_a_suggestion_besides_other_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    misspelt = BAD.replace("zones: [{name: eu-west-1a,", "zones: [{name: eu-west-1a, Internal: x,")

    with pytest.raises(SystemExit, match="1"):
        validate(file=file(tmp_path, misspelt))

    unknown, wrong = printed(capsys)
    assert unknown.startswith(f"{ZONE}.Internal: ")
    assert unknown.endswith('did you mean "internal"?')
    assert wrong == f'{VPC}: Invalid value: "vpc-?": does not match ^vpc-[a-z0-9]+$'


def test_a_change_is_checked_against_the_old_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = file(tmp_path, GOOD.replace("subnet-1", "subnet-2"))

    with pytest.raises(SystemExit, match="1"):
        validate(file=new, old=file(tmp_path, GOOD, "old.yaml"))

    assert printed(capsys) == [
        f'{ZONE}.workersSubnetID: Invalid value: "subnet-2": field is immutable'
    ]


def test_a_single_old_shoot_may_have_another_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = file(tmp_path, GOOD.replace("name: web", "name: before"), "old.yaml")

    validate(file=file(tmp_path, GOOD), old=old)

    assert printed(capsys) == ["Shoot garden-dev/web is valid"]


def test_the_old_file_must_contain_the_same_object(tmp_path: Path) -> None:
    old = file(tmp_path, PROFILE, "old.yaml")

    with pytest.raises(ManifestFileError, match="--old does not contain Shoot garden-dev/web"):
        validate(file=file(tmp_path, GOOD), old=old)


def test_fields_that_admission_defaults_may_be_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ipv6 = GOOD.replace("type: calico", "type: calico, ipFamilies: [IPv6]")

    validate(file=file(tmp_path, ipv6))

    assert printed(capsys) == ["Shoot garden-dev/web is valid"]


def test_the_ip_families_are_read_from_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(file=file(tmp_path, INFRASTRUCTURE + CLUSTER))

    assert printed(capsys) == ["Infrastructure shoot--dev--web/web is valid"]


def test_an_infrastructure_without_a_cluster_is_validated_as_ipv4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        validate(file=file(tmp_path, INFRASTRUCTURE))

    captured = capsys.readouterr()
    assert [line.partition(": ")[0] for line in captured.out.splitlines()] == [
        "spec.providerConfig.networks.zones",
        "spec.providerConfig.networks.zones[0]",
    ]
    assert "assuming IPv4" in captured.err


def test_findings_of_several_objects_have_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        validate(file=file(tmp_path, GOOD + INFRASTRUCTURE))

    lines = printed(capsys)
    assert lines[0] == "Shoot garden-dev/web is valid"
    assert lines[1].startswith("Infrastructure shoot--dev--web/web: spec.providerConfig.networks")


def test_json_output_has_every_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))

    with pytest.raises(SystemExit, match="1"):
        app(["aws", "validate", "-f", "-", "-o", "json"])

    assert orjson.loads(capsys.readouterr().out) == [
        {
            "object": "Shoot garden-dev/web",
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "vpc-?": does not match ^vpc-[a-z0-9]+$',
            "field": "spec.provider.infrastructureConfig.networks.vpc.id",
        }
    ]


def test_json_without_findings_is_an_empty_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(file=file(tmp_path, GOOD), output="json")

    assert orjson.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "contains nothing"),
        (
            PROFILE,
            "must contain a Shoot or an Infrastructure on AWS, but contains CloudProfile aws",
        ),
        (GOOD.replace("type: aws", "type: gcp"), "but contains Shoot garden-dev/web"),
        ("- a", "document 1 .* is not a Kubernetes object"),
        ("a: {", "document 1 .* cannot be read"),
        (
            INFRASTRUCTURE + CLUSTER.replace("seed: {}", "seed: []"),
            r"Cluster shoot--dev--web: spec\.seed is not an object",
        ),
    ],
)
def test_a_file_without_required_objects_is_reported_in_a_sentence(
    tmp_path: Path, content: str, problem: str
) -> None:
    with pytest.raises(ManifestFileError, match=problem):
        validate(file=file(tmp_path, content))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ManifestFileError, match=r"cannot read .*gone\.yaml: No such file"):
        validate(file=str(tmp_path / "gone.yaml"))
