"""The commands on the page about local development are ones that `pergola` has."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from pergola.cli import app

PAGE: Final = Path(__file__).parents[3] / "docs" / "how-to" / "garden-local-development.md"


def commands() -> list[list[str]]:
    """Return the arguments of each call of `pergola` on the page, without redirections."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    lines = [re.split("[#>]", line)[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("pergola ")]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_a_command_on_the_page_can_be_called(arguments: list[str]) -> None:
    command, bound, *_ = app.parse_args(arguments, print_error=False, exit_on_error=False)
    assert callable(command)
    assert bound is not None


def test_the_page_has_commands() -> None:
    assert ["garden", "status", "local"] in commands()
