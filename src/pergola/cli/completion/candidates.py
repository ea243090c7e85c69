"""Candidates for the word at the cursor: commands, options, values, and objects of the cluster."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from pergola.cli.completion.cluster_words import Words, contexts, gardens, named, namespaces

if TYPE_CHECKING:
    from cyclopts import App, Argument

FILES: Final = ":files"
"""Stands for paths, which the shell completes."""
_END: Final = "--"
_OBJECTS: Final = ("why", "explain", "infra status", "infra check", "infra adopt")
_GARDENS: Final = ("garden plan", "garden status", "garden wait", "garden export")
_KINDS: Final = {
    "network reconcile": "networks",
    "network wait": "networks",
    "network status": "networks",
    "network migrate": "networks",
    "network restore": "networks",
    "network delete": "networks",
    "network-policy explain": "services",
    "aws check": "infrastructures",
    "aws plan": "infrastructures",
    "aws show": "infrastructures",
    "aws cloud-config": "infrastructures",
}
"""The kind whose names the first argument of a command can be."""


class _Line(NamedTuple):
    """A command line up to the cursor.

    Attributes:
        path: the words of the command.
        options: the values of the options before the cursor.
        positionals: the number of arguments before the cursor.
        pending: the option whose value is at the cursor, or None.
    """

    app: "App"
    path: str
    options: dict[str, str]
    positionals: int
    pending: "Argument | None"


def candidates(app: "App", words: Sequence[str]) -> list[str]:
    """Return the candidates for the last word, each with a description after a tab.

    Args:
        words: those after the program's name, up to the cursor.
    """
    *before, word = words or [""]
    line = _read(app, before)
    if _END in before:
        return [FILES]
    name, equals, value = word.partition("=")
    if word.startswith("--") and equals:
        option = _options(line.app).get(name)
        found = _values(option, line, value) if option else []
        return [each if each == FILES else f"{name}={each}" for each in found]
    if line.pending is not None:
        return _values(line.pending, line, word)
    if word.startswith("-"):
        return _starting(word, _described_options(line.app))
    return _starting(word, _commands(line)) or _arguments(line, word)


def _read(app: "App", before: Sequence[str]) -> _Line:
    """Read the words before the cursor."""
    path: list[str] = []
    options: dict[str, str] = {}
    positionals, pending = 0, None
    known = _options(app)
    for word in before:
        name, equals, value = word.partition("=")
        if pending is not None:
            options[pending.name] = word
            pending = None
        elif word.startswith("-") and name in known:
            argument = known[name]
            if equals:
                options[argument.name] = value
            elif not argument.is_flag():
                pending = argument
        elif not word.startswith("-"):
            if not positionals and word in _subcommands(app):
                app = app[word]
                path.append(word)
                known = _options(app)
            else:
                positionals += 1
    return _Line(app, " ".join(path), options, positionals, pending)


def _subcommands(app: "App") -> list[str]:
    return [name for name in app if not name.startswith("-") and app[name].show]


def _options(app: "App") -> "dict[str, Argument]":
    if app.default_command is None:
        return {}
    arguments = app.assemble_argument_collection(parse_docstring=True)
    return {
        name: each
        for each in arguments
        if each.show
        for name in (*each.names, *each.negatives)
        if name.startswith("-")
    }


def _described_options(app: "App") -> Iterator[str]:
    for name, argument in _options(app).items():
        yield f"{name}\t{_first_sentence(argument.parameter.help or '')}".rstrip()
    yield "--help"


def _commands(line: _Line) -> Iterator[str]:
    if line.positionals:
        return
    for name in _subcommands(line.app):
        yield f"{name}\t{_first_sentence(line.app[name].help)}".rstrip()


def _values(option: "Argument", line: _Line, word: str) -> list[str]:
    """Return the candidates for the value of an option."""
    if choices := option.get_choices(force=True):
        return _starting(word, choices)
    hint = option.hint
    if hint is Path or Path in get_args(hint) or option.name in ("--file", "--config"):
        return [FILES]
    given = Words(line.options, word)
    if option.name.endswith("context"):
        return contexts(given)
    if option.name.endswith("namespace"):
        return namespaces(given)
    return gardens(given) if option.name == "--garden" else []


def _arguments(line: _Line, word: str) -> list[str]:
    """Return the candidates for an argument of the command."""
    given = Words(line.options, word)
    if line.app.default_command is None:
        return []
    if line.path in _OBJECTS and not line.positionals:
        return named(given)
    if line.path in _GARDENS and not line.positionals:
        return gardens(given)
    if line.path in _KINDS and not line.positionals:
        return named(given, _KINDS[line.path])
    for argument in line.app.assemble_argument_collection():
        if argument.index == line.positionals or argument.is_var_positional():
            if choices := argument.get_choices(force=True):
                return _starting(word, choices)
            if argument.hint is Path or Path in get_args(argument.hint):
                return [FILES]
    return []


def _starting(word: str, found: "Sequence[str] | Iterator[str]") -> list[str]:
    return [each for each in found if each.startswith(word)]


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split()).partition(". ")[0].removesuffix(".")
