"""The page of the library lists the names in the `__all__` of each public room."""

import importlib
import os
from pathlib import Path
from typing import Final

import pytest

from tools.surface import ROOMS

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "library.md"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def reference() -> str:
    """Return the generated part of the page: one table for each package."""
    return "\n".join(_section(room) for room in ROOMS)


def _section(room: str) -> str:
    module = importlib.import_module(f"pergola.{room}")
    rows = [f"| `{name}` | {_summary(getattr(module, name))} |" for name in module.__all__]
    return "\n".join(
        [
            f"## pergola.{room}",
            "",
            _paragraph(module.__doc__ or ""),
            "",
            "| name | |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _summary(value: object) -> str:
    is_documented = isinstance(value, type) or callable(value)
    if not is_documented:
        return "a constant"
    return _paragraph(value.__doc__ or "").replace("|", "\\|") or "a type"


def _paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def test_the_reference_lists_the_public_names_of_every_room() -> None:
    page = PAGE.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(page.partition(BEGIN)[0] + BEGIN + reference())
        return
    assert page.partition(BEGIN)[2] == reference()


@pytest.mark.parametrize("room", ROOMS)
def test_a_table_of_contents_is_sorted_and_complete(room: str) -> None:
    module = importlib.import_module(f"pergola.{room}")

    assert len(set(module.__all__)) == len(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
