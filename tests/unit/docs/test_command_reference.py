"""The page of commands has every command, argument and option, with its meaning."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cyclopts import App

from pergola.cli import app
from tools.command_reference import reference

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs -->\n"


def commands(parent: App, name: str = "pergola") -> Iterator[tuple[str, App]]:
    for word in parent:
        if not word.startswith("-"):
            yield f"{name} {word}", parent[word]
            yield from commands(parent[word], f"{name} {word}")


def test_the_page_is_current() -> None:
    text = PAGE.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(text.partition(BEGIN)[0] + BEGIN + reference())
        return
    assert text.partition(BEGIN)[2] == reference()


def test_every_command_and_option_has_a_description() -> None:
    missing = []
    for name, command in commands(app):
        if not command.help:
            missing.append(name)
        if command.default_command is not None:
            found = command.assemble_argument_collection(parse_docstring=True)
            missing += [
                f"{name} {each.name}" for each in found if each.show and not each.parameter.help
            ]
    assert missing == []


def test_every_command_that_talks_to_a_cluster_has_the_options_of_kubectl() -> None:
    for name, command in commands(app):
        if command.default_command is None:
            continue
        if name == "pergola up":
            continue  # a demonstration, whose programs have users of their own
        names = {each.name for each in command.assemble_argument_collection() if each.show}
        if "--kubeconfig" in names:
            assert {"--kubeconfig", "--as", "--as-group", "--request-timeout"} <= names, name
