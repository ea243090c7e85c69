"""The page of commands, from the commands themselves."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Final

from cyclopts import App, Argument

from pergola.cli import app
from pergola.cli.cluster_options import ScopeOptions

_COMMON: Final = {each.name for each in fields(ScopeOptions)}
_LITERAL: Final = re.compile(r"\s+")
_VALUES: Final = {bool: "", int: " NUMBER", float: " NUMBER"}


def reference() -> str:
    """Return the generated part of the page."""
    return "\n".join([_section("Options for the cluster", _common()), *_commands(app, "pergola")])


def _common() -> Iterator[str]:
    yield "Every command that talks to a cluster has the first five."
    yield ""
    yield from _table(each for each in _arguments(app["why"]) if _is_common(each))


def _commands(parent: App, name: str) -> Iterator[str]:
    """Yield a section for each command below another, in the order of help."""
    for word in sorted(each for each in parent if not each.startswith("-")):
        command, full = parent[word], f"{name} {word}"
        if command.default_command is not None:
            yield _section(full, _described(command, full))
        if any(not each.startswith("-") for each in command):
            yield from _commands(command, full)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines, ""])


def _described(command: App, full: str) -> Iterator[str]:
    arguments = _arguments(command)
    yield "\n\n".join([*_paragraphs(command.help), _usage(arguments, full)])
    own = [each for each in arguments if not _is_common(each)]
    if own:
        yield ""
        yield from _table(own)


def _usage(arguments: Sequence[Argument], full: str) -> str:
    words = [_positional(each) for each in arguments if each.index is not None]
    common = [each.name for each in arguments if _is_common(each)]
    options = ""
    if "--kubeconfig" in common:
        extra = [f"`{name}`" for name in ("--namespace", "--all-namespaces") if name in common]
        options = f", with the options for the cluster{', ' if extra else ''}{', '.join(extra)}"
    return f"`{' '.join([full, *words])}`{options}"


def _positional(argument: Argument) -> str:
    name = argument.name + ("..." if argument.is_var_positional() or _repeats(argument) else "")
    return name if argument.required else f"[{name}]"


def _table(arguments: Iterable[Argument]) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    for each in arguments:
        yield f"| {_names(each)} | {_meaning(each)} |"


def _names(argument: Argument) -> str:
    if argument.index is not None:
        return f"`{argument.name}`"
    value = "" if argument.is_flag() else " VALUE"
    return ", ".join(f"`{name}{value}`" for name in argument.names)


def _meaning(argument: Argument) -> str:
    text = _LITERAL.sub(" ", argument.parameter.help or "").strip().replace("|", "\\|")
    parts = [text] if text else []
    if choices := argument.get_choices(force=True):
        parts.append(f"One of {', '.join(f'`{each}`' for each in choices)}.")
    default = argument.field_info.default
    if isinstance(default, str | int | float) and default and not isinstance(default, bool):
        parts.append(f"By default `{default}`.")
    if argument.required and argument.index is None:
        parts.append("Required.")
    return " ".join(parts)


def _arguments(command: App) -> list[Argument]:
    return [
        each for each in command.assemble_argument_collection(parse_docstring=True) if each.show
    ]


def _is_common(argument: Argument) -> bool:
    return bool(argument.keys) and argument.keys[-1] in _COMMON


def _repeats(argument: Argument) -> bool:
    return bool(argument.token_count()[1])


def _paragraphs(text: str) -> list[str]:
    """Return the description in a docstring, without its parameters."""
    description = text.partition("Parameters\n")[0]
    return [_LITERAL.sub(" ", each).strip() for each in description.split("\n\n") if each.strip()]
