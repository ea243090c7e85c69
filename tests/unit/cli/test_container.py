"""Containers that start with nothing but the path of a configuration."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.cli.container import ContainerError, with_program


@pytest.mark.parametrize(
    ("kind", "program"),
    [("ResourceManagerConfiguration", "resource-manager"), ("OperatorConfiguration", "operator")],
)
def test_the_kind_of_the_file_decides_which_program_runs(
    tmp_path: Path, kind: str, program: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"apiVersion: example/v1\nkind: {kind}\n")
    assert with_program([f"--config={path}", "--more"]) == [program, f"--config={path}", "--more"]
    assert with_program(["--config", str(path)]) == [program, "--config", str(path)]


@pytest.mark.parametrize(
    "arguments", [[], ["operator", "--config=x"], ["--help"], ["--configuration=x"], ["why", "x"]]
)
def test_other_command_lines_stay_as_they_are(arguments: list[str]) -> None:
    assert with_program(arguments) == arguments


@pytest.mark.parametrize("arguments", [["--config"], ["--config="]])
def test_an_option_without_a_file_is_refused(arguments: list[str]) -> None:
    with pytest.raises(ContainerError, match="needs a file"):
        with_program(arguments)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match=f"cannot read {tmp_path}/none"):
        with_program([f"--config={tmp_path}/none"])


def test_a_long_kind_is_shortened(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: {'x' * 100_000}")
    with pytest.raises(ContainerError) as caught:
        with_program([f"--config={path}"])
    assert len(str(caught.value)) < len(str(path)) + 300


@given(st.binary() | st.sampled_from([b"", b"null", b"[]", b"kind: 1", b"kind: Garden", b"a: ]"]))
def test_any_other_file_is_refused_with_its_path(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ContainerError, match=str(path)):
        with_program([f"--config={path}"])
