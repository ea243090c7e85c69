"""The picture of the rooms has the rows that import-linter enforces."""

import re
import tomllib

from tools.support_matrix import ROOT

PICTURES = ROOT / "docs" / "explanation" / "images"


def test_the_rows_of_the_picture_are_those_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = project["tool"]["importlinter"]["contracts"][0]
    rows = re.findall(r'class="name"[^>]*>([^<]+)<', (PICTURES / "rooms.svg").read_text())

    assert [sorted(row.split(", ")) for row in rows] == [
        sorted(layer.split(" | ")) for layer in contract["layers"]
    ]


def test_every_path_that_newcomers_should_read_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    paths = re.findall(r"`((?:src|tests)/[^`]+)`", page)

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
