"""The guide for operators: every command in it can be called, and a test executes it."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from pergola.cli import app
from pergola.testing.documented import PAGES, commands

GUIDE: Final = "how-to/operating-a-garden.md"
TESTS: Final = Path(__file__).parents[2] / "integration" / "operator"


def headings() -> list[str]:
    """Return the headings below which the guide has commands."""
    titles = re.findall(r"^#+ +(.*)$", (PAGES / GUIDE).read_text(), flags=re.MULTILINE)
    return [title for title in titles if commands(GUIDE, title)]


def calls() -> list[list[str]]:
    """Return the arguments of each call of `pergola`, without redirections."""
    lines = [line for title in headings() for line in commands(GUIDE, title)]
    return [
        shlex.split(re.split("[#>]", line)[0])[1:] for line in lines if line.startswith("pergola ")
    ]


@pytest.mark.parametrize("arguments", calls(), ids=" ".join)
def test_a_command_of_the_guide_can_be_called(arguments: list[str]) -> None:
    command, bound, *_ = app.parse_args(arguments, print_error=False, exit_on_error=False)
    assert callable(command)
    assert bound is not None


def test_a_test_executes_the_commands_below_each_heading() -> None:
    text = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    executed = set(re.findall(rf'commands\((?:GUIDE|"{GUIDE}"), "(.*?)"\)', text))

    assert executed == {*headings()}
    assert {"Install", "Watch", "Move", "Upgrade", "Remove"} < executed
