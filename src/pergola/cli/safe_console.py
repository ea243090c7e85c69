"""A console of rich that sends only its own control characters to the terminal."""

import sys
from collections.abc import Iterable
from typing import IO, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from pergola.api.visible_text import visible
from pergola.cli.closed_pipe import end_quietly

_UNLIMITED: Final = 10_000


class SafeConsole(Console):
    """A console that shows control characters of texts, and prints strings as they are.

    Lines are wrapped and coloured only on a terminal; files and pipes get them whole.

    Args:
        file: the standard output by default.
        markup: whether strings may contain rich's markup: only those that no cluster can change.
    """

    def __init__(
        self,
        *,
        file: IO[str] | None = None,
        width: int | None = None,
        soft_wrap: bool = False,
        markup: bool = False,
    ) -> None:
        out = file or sys.stdout
        super().__init__(
            file=file,
            width=width if width or out.isatty() else _UNLIMITED,
            soft_wrap=soft_wrap,
            markup=markup,
            emoji=False,
            highlight=False,
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object; its segments of text contain no control characters."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else visible(segment.text)
            yield Segment(text, segment.style, segment.control)

    def print_line(self, text: str, indent: int = 0, style: str = "") -> None:
        """Print a line; terminals get it wrapped and indented, files and pipes in one piece."""
        if self.is_terminal:
            self.print(Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, indent)))
        else:
            self.print(Text(" " * indent + text, style=style), soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """End the command: nobody reads its output."""
        end_quietly()
