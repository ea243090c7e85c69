"""`pergola new`: projects under names of a user."""

import ast
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.cli.new import NewError, new
from pergola.kube.yaml import parse

WORDS = (
    "warden",
    "Warden",
    "WARDEN",
    "greeting",
    "Greeting",
    "GREETING",
    "example.org",
    "gardenet",
    "Gardenet",
)


@pytest.mark.parametrize("what", ["controller", "webhook", "extension"])
def test_a_project_has_only_words_of_its_own(what: str, tmp_path: Path) -> None:
    new(what, "widget", group="acme.example", to=tmp_path)  # type: ignore[arg-type]

    folder = tmp_path / "widget"
    found = {
        path.relative_to(folder): path.read_text() for path in folder.rglob("*.*") if path.is_file()
    }
    assert Path("widget.py") in found
    assert [(path, word) for path, text in found.items() for word in WORDS if word in text] == []
    for path, text in found.items():
        match path.suffix:
            case ".py":
                ast.parse(text)
            case ".toml":
                tomllib.loads(text)
            case ".yaml" if "templates" not in path.parts:
                parse(text) if "---" not in text else None


@given(name=st.text(max_size=60), group=st.text(max_size=60))
def test_odd_names_are_refused_in_one_sentence(
    name: str, group: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    refused = ""
    try:
        new("controller", name, group=group, to=folder)
    except NewError as error:
        refused = str(error)
    assert "\n" not in refused
    assert [path.name for path in folder.iterdir()] == ([] if refused else [name])


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "widget").mkdir()

    with pytest.raises(NewError, match="exists already"):
        new("controller", "widget", to=tmp_path)
