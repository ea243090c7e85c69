"""`pergola garden compare` with dumps in files."""

from pathlib import Path

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cli.garden.compare import DIFFERENT, compare
from pergola.cli.garden.landscapes import CompareError
from pergola.cli.manifest_files import ManifestFileError
from pergola.kube.yaml import dump
from tests.support.garden import GARDEN, WILDCARD_CERTIFICATE

METADATA = WILDCARD_CERTIFICATE["metadata"]
WILDCARD = {
    **WILDCARD_CERTIFICATE,
    "metadata": {**METADATA, "labels": {"gardener.cloud/role": "garden-cert"}},
}
SERVICE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "virtual-garden-kube-controller-manager", "namespace": "garden"},
    "spec": {"ports": [{"name": "metrics", "port": 1}], "selector": {"app": "kubernetes"}},
}
EXTRA: JsonObject = {**SERVICE, "metadata": {"name": "extra", "namespace": "garden"}}
COMPONENT = "virtual-garden-kube-controller-manager"


def listed(folder: Path, *objects: JsonObject) -> str:
    """Write a dump as kubectl prints it."""
    path = folder / "dump.yaml"
    path.write_text(dump({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
    return str(path)


@pytest.fixture
def landscape(tmp_path: Path) -> str:
    """A landscape with a Garden, an additional Service, and another that differs."""
    return listed(tmp_path, GARDEN, WILDCARD, SERVICE, EXTRA)


def test_differences_are_listed_by_component_and_the_exit_code_is_2(
    landscape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        compare(source=landscape)

    lines = capsys.readouterr().out.splitlines()
    assert left.value.code == DIFFERENT == 2
    extra = lines.index("  only there: Service garden/extra")
    assert lines.index("other objects") == extra - 1
    port = lines.index("    spec.ports[metrics].port")
    assert lines[port + 1 : port + 3] == ["      there: 1", "      here:  10257"]
    assert lines.index(f"component {COMPONENT}") < port
    assert lines[-2].startswith("1 object only there, ")
    assert lines[-1] == "not compared: 2 objects of users"


def test_json_has_every_difference(landscape: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare(source=landscape, only=[COMPONENT], output="json")

    found = orjson.loads(capsys.readouterr().out)
    (service,) = found["differing"]
    assert service["group"] == f"component {COMPONENT}"
    assert (service["kind"], service["namespace"]) == ("Service", "garden")
    path = "spec.ports[metrics].port"
    assert {"path": path, "there": 1, "here": 10257} in service["fields"]
    assert found["onlyThere"] == []
    groups = {f"component {COMPONENT}", "ManagedResource shoot-core-kube-controller-manager"}
    assert {each["group"] for each in found["onlyHere"]} == groups


def test_a_dump_as_a_table_is_recognized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"where": "runtime cluster", "apiVersion": GARDEN["apiVersion"], "kind": "Garden"}
    rows = [
        {**row, "namespace": "", "name": "garden", "spec": GARDEN["spec"]},
        {
            "where": "runtime cluster",
            "apiVersion": "v1",
            "kind": "Secret",
            "namespace": "garden",
            "name": "wildcard",
            "labels": {"gardener.cloud/role": "garden-cert"},
            "data": ["tls.crt", "tls.key"],
        },
    ]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))

    with pytest.raises(SystemExit):
        compare(source=str(path))

    assert "0 objects only there" in capsys.readouterr().out


def test_no_value_of_a_secret_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gardener", "namespace": "garden", "labels": {"a": "b"}},
        "data": {"kubeconfig": "aHVudGVyMg==", "other": "aHVudGVyMg=="},
    }

    with pytest.raises(SystemExit):
        compare(source=listed(tmp_path, GARDEN, WILDCARD, secret), output="json")

    out = capsys.readouterr().out
    assert "data.other" in out
    assert "aHVudGVyMg" not in out


def test_a_landscape_without_a_garden_is_an_error(tmp_path: Path) -> None:
    dumped = listed(tmp_path, WILDCARD)

    with pytest.raises(CompareError, match="one Garden is needed, but there is none"):
        compare(source=dumped)

    (tmp_path / "garden.yaml").write_text(dump(GARDEN))
    with pytest.raises(SystemExit):
        compare(source=dumped, garden=str(tmp_path / "garden.yaml"))


def test_one_of_several_gardens_is_selected_by_name(tmp_path: Path) -> None:
    other = {**GARDEN, "metadata": {"name": "other"}}
    dumped = listed(tmp_path, GARDEN, other, WILDCARD)

    with pytest.raises(CompareError, match="there is garden, other"):
        compare(source=dumped)
    with pytest.raises(SystemExit):
        compare(source=dumped, garden="other")


def test_references_that_the_dump_lacks_are_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dns = {"providers": [{"name": "a", "type": "b", "secretRef": {"name": "account"}}]}
    garden = {**GARDEN, "spec": {**GARDEN["spec"], "dns": dns}}

    with pytest.raises(SystemExit):
        compare(source=listed(tmp_path, garden, WILDCARD))

    assert "warning: Secret garden/account (spec.dns.providers[0].secretRef.name) is not given" in (
        capsys.readouterr().err
    )


def test_feature_gates_come_from_the_operators_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text(
        "apiVersion: operator.config.gardener.cloud/v1alpha1\nkind: OperatorConfiguration\n"
        "featureGates: {IstioTLSTermination: false}\n"
    )
    dumped = listed(tmp_path, GARDEN, WILDCARD)
    service = "Service garden/virtual-garden-kube-apiserver-mtls"

    with pytest.raises(SystemExit):
        compare(source=dumped)
    without = capsys.readouterr().out
    with pytest.raises(SystemExit):
        compare(source=dumped, config=config)

    assert service in without
    assert service not in capsys.readouterr().out


def test_a_missing_dump_is_reported() -> None:
    with pytest.raises(ManifestFileError, match=r"cannot read ./absent.yaml"):
        compare(source="./absent.yaml")
