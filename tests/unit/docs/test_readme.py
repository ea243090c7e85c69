"""The controller in the README, and its test, match the example, which is executed."""

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
EXAMPLE: Final = ROOT / "examples" / "controller"


@pytest.mark.parametrize("name", ["count_keys.py", "test_count_keys.py"])
def test_the_readme_shows_the_example_of_a_controller(name: str) -> None:
    text = (EXAMPLE / name).read_text()
    assert f"```python\n{text}```\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(("name", "lines"), [("count_keys.py", 30), ("test_count_keys.py", 17)])
def test_the_example_is_short(name: str, lines: int) -> None:
    text = (EXAMPLE / name).read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= lines
