"""`pergola garden check` on files."""

from pathlib import Path

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.check import check
from pergola.cli.manifest_files import ManifestFileError
from pergola.kube.yaml import dump
from tests.support.gardens import MINIMAL, VIRTUAL, with_values

EXAMPLES = Path(__file__).parents[3] / "examples" / "garden"
VERSION = f"{VIRTUAL}.kubernetes.version"


def file(folder: Path, obj: JsonObject, name: str = "garden.yaml") -> str:
    path = folder / name
    path.write_text(dump(obj))
    return str(path)


def test_warnings_about_a_valid_garden_are_printed_separately(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check(file=str(EXAMPLES / "garden.yaml"))

    printed = capsys.readouterr()
    assert printed.out == "Garden local is valid\n"
    assert "warning: Garden local: spec.virtualCluster.etcd.main.backup is not set" in printed.err


def test_every_finding_is_a_line_and_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {VERSION: "1.1.0", f"{VIRTUAL}.networking.services": ["nonsense"]}

    with pytest.raises(SystemExit, match="1"):
        check(file=file(tmp_path, with_values(MINIMAL, broken)))

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["Garden minimal", f"{VIRTUAL}.networking.services[0]"],
        ["Garden minimal", VERSION],
    ]


def test_json_has_findings_and_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        check(file=file(tmp_path, with_values(MINIMAL, {VERSION: "1.1.0"})), output="json")

    (row,) = orjson.loads(capsys.readouterr().out)
    assert row["object"] == "Garden minimal"
    assert [cause["field"] for cause in row["findings"]] == [VERSION]
    assert len(row["warnings"]) == 2


def test_a_change_is_checked_against_the_old_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = with_values(MINIMAL, {VERSION: "1.33.1"})
    old = file(tmp_path, MINIMAL, "old.yaml")

    with pytest.raises(SystemExit, match="1"):
        check(file=file(tmp_path, changed), old=old)

    assert capsys.readouterr().out.startswith(f"Garden minimal: {VERSION}: ")


def test_the_old_file_must_contain_the_same_garden(tmp_path: Path) -> None:
    old = file(tmp_path, with_values(MINIMAL, {"metadata.name": "other"}), "old.yaml")

    with pytest.raises(ManifestFileError, match="--old does not contain Garden minimal"):
        check(file=file(tmp_path, MINIMAL), old=old)


def test_the_error_about_a_file_without_a_garden_names_its_content(tmp_path: Path) -> None:
    config_map: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    with pytest.raises(ManifestFileError, match=r"must contain a Garden .* contains ConfigMap a"):
        check(file=file(tmp_path, config_map))


def test_an_old_manifest_and_a_cluster_are_mutually_exclusive(tmp_path: Path) -> None:
    with pytest.raises(ManifestFileError, match="--old cannot be combined"):
        check(file=file(tmp_path, MINIMAL), old="x", cluster=ClusterOptions(context="y"))
