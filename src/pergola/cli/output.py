"""The formats of `-o`: one mechanism for every command that lists or shows things."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from pergola.cli.text import plain_console, say

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue

_GAP: Final = "   "

ListFormat: TypeAlias = Literal["table", "wide", "json", "yaml", "name"]
ListOutput: TypeAlias = Annotated[
    ListFormat,
    Parameter(
        alias="-o",
        help="`table` for people, `wide` with more columns; `json` or `yaml` for programs; `name` "
        "for scripts: KIND/NAME, one a line.",
    ),
]
ShowFormat: TypeAlias = Literal["text", "json", "yaml", "name"]
ShowOutput: TypeAlias = Annotated[
    ShowFormat,
    Parameter(
        alias="-o",
        help="`text` for people; `json` or `yaml` for programs; `name` for scripts: KIND/NAME, one "
        "a line.",
    ),
]
ReportFormat: TypeAlias = Literal["text", "json", "yaml"]
ReportOutput: TypeAlias = Annotated[
    ReportFormat, Parameter(alias="-o", help="`text` for people; `json` or `yaml` for programs.")
]


def show(
    output: str, *, data: "JsonValue", text: Callable[[], None], names: Iterable[str] = ()
) -> None:
    """Print in the requested format.

    Args:
        output: A format of `-o`.
        data: For programs.
        text: Prints for people.
        names: As of `object_name`, for scripts.
    """
    if output == "json":
        import orjson

        say(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    elif output == "yaml":
        from pergola.kube.yaml_writer import dump

        say(dump(data), end="")
    elif output == "name":
        for name in names:
            say(name)
    else:
        text()


def object_name(kind: str, group: str, name: str) -> str:
    """Return how kubectl names an object: `deployment.apps/web`."""
    return f"{kind}.{group}/{name}".lower() if group else f"{kind}/{name}".lower()


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below heads; only a terminal gets its cells wrapped."""
    lines = [tuple(heads), *(tuple(" ".join(cell.split()) for cell in row) for row in rows)]
    if sys.stdout.isatty():
        _print_wrapped(lines)
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, strict=True)
        say(_GAP.join(cell.ljust(width) for cell, width in cells).rstrip())


def _print_wrapped(lines: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="", pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for head in lines[0]:
        table.add_column(head, overflow="fold")
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    plain_console().print(table)
