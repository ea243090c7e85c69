"""The wheel in an empty environment and folder does everything that a checkout does."""

import subprocess
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PATTERN: Final = "examples/aws/pattern-2-byo.yaml"


def ran(line: str, environment: dict[str, str], folder: Path) -> str:
    """Run a shell command line, and return its output."""
    answer = _answer(line, environment, folder)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _answer(
    line: str, environment: dict[str, str], folder: Path
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/bash", "-c", line],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_wheel_contains_each_example_and_each_file_of_the_charts(wheel: Path) -> None:
    listed = {
        str(path.relative_to(ROOT))
        for folder in ("charts", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    packed = zipfile.ZipFile(wheel).namelist()

    prefix = "pergola/shipped/"
    found = {name.removeprefix(prefix) for name in packed if name.startswith(prefix)}
    assert found == listed | {"__init__.py"}


def test_the_wheel_contains_each_file_with_rules_for_prometheus(wheel: Path) -> None:
    package = ROOT / "src/pergola"
    files = {*package.rglob("prometheus_rules/*"), *package.rglob("prometheus_rules.yaml")}
    assert len(files) > 10
    packed = zipfile.ZipFile(wheel).namelist()
    assert {f"pergola/{file.relative_to(package)}" for file in files} - {*packed} == set()


def test_kubectl_finds_the_command_and_its_completion(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert "needs attention" in ran("kubectl-pergola why --help", environment, tmp_path)
    answer = ran("kubectl_complete-pergola network-p", environment, tmp_path).splitlines()
    assert [line.partition("\t")[0] for line in answer] == ["network-policy", ":4"]


def test_commands_that_need_an_extra_name_it(environment: dict[str, str], tmp_path: Path) -> None:
    ran("pergola unpack examples", environment, tmp_path)

    assert "is valid" in ran(f"pergola aws validate -f {PATTERN}", environment, tmp_path)
    refused = _answer(f"pergola aws check -f {PATTERN}", environment, tmp_path)

    assert refused.returncode == 1
    assert refused.stderr == "pergola: this needs pergola[aws]: pip install 'pergola[aws]'\n"


def test_unpacking_does_not_change_files_of_the_user(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert ran("pergola unpack", environment, tmp_path).split() == ["examples", "charts", "docs"]
    assert ran("pergola unpack", environment, tmp_path).split() == ["examples", "charts", "docs"]
    first = tmp_path / "examples" / "first.yaml"
    first.write_text("mine")

    refused = _answer("pergola unpack", environment, tmp_path)

    assert refused.returncode == 1
    assert "examples/first.yaml exists with other content" in refused.stderr
    assert first.read_text() == "mine"
