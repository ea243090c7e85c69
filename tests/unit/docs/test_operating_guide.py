"""The guide for operators: a test executes every command in it."""

import re
from pathlib import Path
from typing import Final

from tests.support.documented import blocks

GUIDE: Final = "how-to/operating-a-garden.md"
TESTS: Final = Path(__file__).parents[2] / "integration" / "operator"
ON_SEEDS: Final = {"Seeds"}
"""Needs several Seeds: test_rotation_on_seeds.py does the same without the command line."""


def headings() -> set[str]:
    """Return the headings below which the guide has commands."""
    return {block.heading for block in blocks(GUIDE) if block.language == "sh"}


def test_a_test_executes_the_commands_below_each_heading() -> None:
    text = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    executed = set(re.findall(rf'commands\((?:GUIDE|"{GUIDE}"), "(.*?)"\)', text))

    assert executed == headings() - ON_SEEDS
    assert {"Install", "Watch", "Move", "Upgrade", "Remove"} < executed
