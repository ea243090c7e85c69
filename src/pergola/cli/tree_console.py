"""The console of commands that print trees: lines are wrapped only on a terminal."""

import sys
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

_UNLIMITED: Final = 10_000


def console(file: IO[str] | None = None) -> "Console":
    """Return the console of the standard output, or of a file."""
    from pergola.cli.safe_console import SafeConsole

    out = file or sys.stdout
    width = None if out.isatty() else _UNLIMITED
    return SafeConsole(file=out, width=width)
