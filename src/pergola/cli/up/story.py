"""The output of `pergola up`: numbered chapters, each with its result and commands to repeat it.

No line is longer than 80 columns, except for commands with a longer word.
"""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from pergola.cli.safe_console import SafeConsole
from pergola.cli.up.progress import Lines
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pergola.sandbox import Progress

WIDTH: Final = 80
_INDENT: Final = 4
_COMMAND: Final = " " * 6


class UpError(Exception):
    """A step of the demonstration failed; the text says which one, and why."""


def console() -> Console:
    """Return a console that is no wider than a page."""
    found = SafeConsole(markup=True)
    found.width = min(found.width, WIDTH)
    return found


class Story:
    """The output of one demonstration.

    Args:
        chapters: The number of chapters.

    Attributes:
        title: The title of the current chapter.
    """

    def __init__(self, console: "Console", chapters: int) -> None:
        self.console = console
        self.title = "the start"
        self._chapters = chapters
        self._number = 0

    def chapter(self, title: str, about: str) -> None:
        """Begin the next chapter with a description."""
        self._number += 1
        self.title = title
        head = f"{self._number}/{self._chapters} {escape(title)}"
        self.console.print(f"\n[bold]{head}[/]")
        self._print(Text(about, style="dim"))

    def say(self, text: str) -> None:
        """Print a result; `text` may contain rich's markup."""
        self._print(Text.from_markup(text))

    def line(self, text: str) -> None:
        """Print one line, truncated if it is too long."""
        room = self.console.width - _INDENT
        self._print(Text(text if len(text) <= room else f"{text[: room - 1]}…", style="dim"))

    def show(self, content: "RenderableType") -> None:
        """Print a table of rich, or text, in the column of results."""
        if isinstance(content, Text):
            self._print(content)
        else:
            self.console.print(Padding(content, (0, 0, 0, _INDENT), expand=False))

    def _print(self, text: Text) -> None:
        """Print text without the spaces that would fill its lines."""
        for line in text.wrap(self.console, self.console.width - _INDENT):
            line.rstrip()
            self.console.print(Text(" " * _INDENT).append_text(line), soft_wrap=True)

    def try_it(self, kubeconfig: Path, *commands: str) -> None:
        """Print commands that work in another terminal."""
        self.say("Try it, in another terminal:")
        for command in (*_exports(kubeconfig, commands), *commands):
            for line in broken(command, self.console.width - len(_COMMAND)):
                self.console.print(Text(_COMMAND + line, style="cyan"), soft_wrap=True)

    @contextmanager
    def working(self) -> "Iterator[Progress]":
        """Yield a receiver of progress lines; on a terminal, only the last one is shown."""
        with Lines(self.console, _INDENT) as lines:
            yield lines.show


def path_of(path: Path) -> str:
    """Return a path as written by `pergola unpack`, if it is one of Pergola's own."""
    is_own = path.is_relative_to(EXAMPLES.parent)
    return escape(str(path.relative_to(EXAMPLES.parent) if is_own else path))


def broken(command: str, width: int) -> list[str]:
    """Return a command as lines that a shell joins again; words stay whole."""
    lines, current = [], ""
    for word in command.split(" "):
        if current and len(current) + len(word) + len("  \\") > width:
            lines.append(f"{current} \\")
            current = f"  {word}"
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def _exports(kubeconfig: Path, commands: tuple[str, ...]) -> Iterator[str]:
    """Yield the environment that the commands need in another terminal."""
    own = Path(sys.executable).with_name("pergola")
    found = shutil.which("pergola")
    is_found = found is not None and Path(found).resolve() == own.resolve()
    if not is_found and any(command.startswith("pergola ") for command in commands):
        yield f"export PATH={own.parent}:$PATH"
    yield f"export KUBECONFIG={kubeconfig}"


@asynccontextmanager
async def within(seconds: float, what: str) -> AsyncIterator[None]:
    """Limit the time of a block.

    Args:
        what: What the block waits for, for the error.

    Raises:
        UpError: The time is over.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise UpError(f"waited {seconds:.0f} s for {what}") from None
