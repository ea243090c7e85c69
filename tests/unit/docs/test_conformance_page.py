"""docs/reference/conformance.md is generated from facts, decided differences and saved results."""

import os
from pathlib import Path
from typing import Final

from conformance.page import page

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "conformance.md"


def test_the_page_is_up_to_date() -> None:
    text = page()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(text)
        return
    assert PAGE.read_text() == text
