"""The index of decisions lists each page once, with its title."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

DECISIONS: Final = Path(__file__).parents[3] / "docs/decisions"
ENTRY: Final = re.compile(r"^- (\d+): \[(.+)\]\((\d{4}-.+\.md)\)$", re.MULTILINE)


def test_the_index_lists_each_decision_once_with_its_title() -> None:
    entries = ENTRY.findall((DECISIONS / "README.md").read_text())
    listed = Counter(name for _, _, name in entries)

    assert listed == Counter(page.name for page in DECISIONS.glob("[0-9]*.md"))
    for number, title, name in entries:
        first = (DECISIONS / name).read_text().partition("\n")[0]
        assert first == f"# {number}. {title}"
