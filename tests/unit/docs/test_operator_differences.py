"""The page of differences from the original operator has every decided difference."""

import os
from pathlib import Path
from typing import Final

from pergola.operator.compare import Expected, expected

PAGE: Final = (
    Path(__file__).parents[3] / "docs" / "reference" / "differences-from-gardener-operator.md"
)
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def test_the_page_has_every_decided_difference() -> None:
    text = PAGE.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(text.partition(BEGIN)[0] + BEGIN + table())
        return
    assert text.partition(BEGIN)[2] == table()


def table() -> str:
    """Return the table of the page: one line for each difference."""
    header = "| Object | Field | Original | Ours | Why |\n| --- | --- | --- | --- | --- |\n"
    return header + "".join(f"| {' | '.join(cells(row))} |\n" for row in expected())


def cells(row: Expected) -> list[str]:
    """Return the cells of a difference."""
    objects = "<br>".join(row.objects)
    field = code(row.field) if row.field else "the object"
    return [objects.replace("*", "\\*"), field, value(row.original), value(row.ours), row.why]


def value(pattern: str) -> str:
    """Return the pattern of a value, or words if it is not one."""
    if pattern.startswith("("):
        return pattern.strip("()")
    return "any" if pattern == "*" else code(pattern)


def code(text: str) -> str:
    """Return a text as code of a table's cell."""
    return f"`{text}`".replace("|", "\\|")
