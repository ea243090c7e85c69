"""`pergola new`: begins a project from one of the examples, under names of your own."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pergola.cli.text import say
from pergola.cli.unpack import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME: Final = re.compile(r"[a-z][a-z0-9]*")
_LONGEST: Final = 40
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_FOLDERS: Final = {
    "controller": "own-kind",
    "webhook": "own-webhook",
    "extension": "network/gardenet",
}
_EXAMPLES: Final = {"controller": "greeting", "webhook": "warden", "extension": "gardenet"}


class NewError(Exception):
    """A project cannot be begun; the text gives the reason."""


def new(
    what: Literal["controller", "webhook", "extension"],
    name: Annotated[str, Parameter(help="Such as `widget`; the kind is then called Widget.")],
    *,
    group: Annotated[str, Parameter(help="The API group of the kind.")] = "example.org",
    to: Path = Path(),
) -> None:
    """Begin a project: a controller with a kind of its own, a webhook, or a network extension.

    Writes a folder with the name, which contains a working program and its test, to be changed
    step by step. docs/tutorials/own-kind.md and docs/tutorials/network-extension.md explain them.

    Parameters
    ----------
    what
        controller: a kind with its definition, controller, tests and chart. webhook: an admission
        webhook that registers itself. extension: a network extension of Gardener in one file.
    to
        The folder in which the new one is created; the current one by default.
    """
    from pergola.shipped import EXAMPLES

    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise NewError(
            f"{name!r} is not a name for a kind: use up to {_LONGEST} lower-case letters and "
            "digits, and begin with a letter"
        )
    if not _GROUP.fullmatch(group):
        raise NewError(f"{group!r} is not an API group: use a domain, such as example.org")
    folder = to / name
    if folder.exists():
        raise NewError(f"{folder} exists already: choose another name, or another folder with --to")
    source = EXAMPLES / _FOLDERS[what]
    words = _words(_EXAMPLES[what], name, group)
    for path in files_of(source):
        if path.name == "README.md":  # about the example
            continue
        target = folder / _renamed(str(path.relative_to(source)), words)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_renamed(path.read_text(), words))
    say(folder)


def _words(example: str, name: str, group: str) -> "Mapping[str, str]":
    """Return the words of an example with those that replace them."""
    return {
        "example.org": group,
        example.capitalize(): name.capitalize(),
        example.upper(): name.upper(),
        example: name,
    }


def _renamed(text: str, words: "Mapping[str, str]") -> str:
    pattern = "|".join(map(re.escape, words))
    return re.sub(pattern, lambda found: words[found[0]], text)
