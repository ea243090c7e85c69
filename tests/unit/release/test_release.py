"""`make release`: its contents, and equal bytes from equal sources."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from pergola import __version__
from pergola.api.objects import map_at, name_of
from pergola.charts import read_chart
from pergola.cli.crds.groups import definitions, operator_definitions
from pergola.kube.yaml import parse, parse_documents
from pergola.sandbox.images.installation import NAME, required

pytestmark = pytest.mark.timeout(300)

ROOT: Final = Path(__file__).parents[3]
EPOCH: Final = "1700000000"
IMAGE: Final = "registry.example/team/pergola"


def released(folder: Path) -> dict[str, Path]:
    """Release into a folder, and return the files by name."""
    answer = subprocess.run(
        [sys.executable, "-m", "tools.release", folder, "--without-image", "--image", IMAGE],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found = {Path(line).name: Path(line) for line in answer.stdout.splitlines()}
    assert {path.name for path in folder.iterdir()} - {".gitignore"} == found.keys()
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return released(tmp_path_factory.mktemp("release"))


def test_two_releases_of_the_same_sources_are_equal(files: dict[str, Path], tmp_path: Path) -> None:
    again = released(tmp_path)

    assert again.keys() == files.keys()
    assert [name for name in files if again[name].read_bytes() != files[name].read_bytes()] == []


def test_all_timestamps_are_that_of_the_commit(files: dict[str, Path]) -> None:
    with tarfile.open(files[f"operator-{__version__}.tgz"]) as chart:
        assert {member.mtime for member in chart} == {int(EPOCH)}
    with zipfile.ZipFile(files[f"pergola-{__version__}-py3-none-any.whl"]) as wheel:
        assert {info.date_time for info in wheel.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_the_operator_can_read_each_packaged_chart(files: dict[str, Path]) -> None:
    charts = [path.parent for path in sorted(ROOT.glob("charts/*/Chart.yaml"))]
    packed = [path for name, path in files.items() if name.endswith(".tgz")]
    assert len(packed) == len(charts) > 0

    for path in packed:
        chart = read_chart(path.read_bytes(), path.name)
        assert f"{chart.name}-{chart.version}.tgz" == path.name


def test_each_chart_names_the_image(files: dict[str, Path]) -> None:
    for name, path in files.items():
        if name.endswith(".tgz"):
            with tarfile.open(path) as chart:
                values = chart.extractfile(f"{name.rpartition('-')[0]}/values.yaml")
                parsed = parse(values.read() if values else b"")
            assert isinstance(parsed, dict)
            image = map_at(parsed, "image")
            assert image.get("repository", IMAGE) == IMAGE, name


def test_the_definitions_of_all_products_are_those_of_pergola(files: dict[str, Path]) -> None:
    written = [
        name_of(document.value)
        for name, path in files.items()
        if name.endswith("-crds.yaml")
        for document in parse_documents(path.read_text())
        if isinstance(document.value, dict)
    ]
    assert sorted(written) == sorted(map(name_of, (*definitions(), *operator_definitions())))


def test_all_other_files_have_checksums(files: dict[str, Path]) -> None:
    lines = files["SHA256SUMS"].read_text().splitlines()

    assert dict(line.split("  ")[::-1] for line in lines) == {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in files.items()
        if name != "SHA256SUMS"
    }


def test_the_bill_of_materials_has_each_required_package_and_its_licence(
    files: dict[str, Path],
) -> None:
    bill: dict[str, Any] = json.loads(files[f"pergola-{__version__}.cdx.json"].read_text())
    listed = files[f"pergola-{__version__}-licences.txt"].read_text().splitlines()

    assert bill["metadata"]["component"]["version"] == __version__
    licences = {each["name"]: each.get("licenses") for each in bill["components"]}
    needed = required(NAME) - {NAME}
    assert needed <= licences.keys()
    assert [name for name in sorted(needed) if not licences[name]] == []
    assert {line.split()[0] for line in listed} == {*licences, NAME}
