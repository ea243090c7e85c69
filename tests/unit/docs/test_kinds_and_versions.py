"""The pages with all kinds and with all supported versions are those of the source."""

import os
import re
from pathlib import Path
from typing import Final

import pytest

from pergola import __version__
from tools.kind_pages import BEGIN, definitions, fields, kind_page, overview
from tools.support_matrix import ROOT, lines, table

REFERENCE: Final = ROOT / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "generated"), [("kinds.md", overview), ("support-matrix.md", table)]
)
def test_the_generated_part_of_a_page_is_current(page: str, generated: object) -> None:
    assert callable(generated)
    path = REFERENCE / page
    head = path.read_text().partition(BEGIN)[0]
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        path.write_text(head + BEGIN + generated())
    assert path.read_text() == head + BEGIN + generated()


def test_each_line_of_the_matrix_names_tests() -> None:
    assert [line.tests for line in lines() if not Path(ROOT, line.tests).exists()] == []


def test_every_release_has_notes_for_upgrades() -> None:
    released = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    notes = (ROOT / "docs" / "how-to" / "upgrade.md").read_text()

    assert __version__ in released
    assert re.findall(r"^## (\S+)", notes, re.MULTILINE) == released


def test_every_field_of_a_definition_has_a_row() -> None:
    for crd in definitions():
        (version,) = [each for each in crd["spec"]["versions"] if each["storage"]]
        schema = version["schema"]["openAPIV3Schema"]["properties"]
        page = kind_page(crd)
        expected = [
            field.path
            for part in ("spec", "status")
            for field in fields(schema.get(part, {}), part)
        ]
        assert expected
        assert page.count("\n| `") == len(expected)
        assert _properties(schema.get("spec", {})) + _properties(schema.get("status", {})) == len(
            expected
        )


def _properties(schema: object) -> int:
    """Return how many properties a schema declares, at any depth."""
    if isinstance(schema, list):
        return sum(map(_properties, schema))
    if not isinstance(schema, dict):
        return 0
    declared = schema.get("properties")
    own = len(declared) if isinstance(declared, dict) else 0
    inner = declared.values() if isinstance(declared, dict) else ()
    others = [value for key, value in schema.items() if key in ("items", "additionalProperties")]
    return own + sum(map(_properties, [*inner, *others]))
