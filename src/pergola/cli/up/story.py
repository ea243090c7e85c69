"""The output of `pergola up`: numbered chapters with a few lines each."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class UpError(Exception):
    """A step of the demonstration failed; the text says which, and why."""


class Story:
    """The output of one demonstration.

    Args:
        chapters: The number of chapters.
    """

    def __init__(self, console: "Console", chapters: int) -> None:
        self.console = console
        self._chapters = chapters
        self._number = 0

    def chapter(self, title: str) -> None:
        """Begin the next chapter."""
        self._number += 1
        self.console.print(f"\n[bold]{self._number}/{self._chapters} {title}[/]", soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a line; `text` may contain rich's markup."""
        self.console.print(f"    {text}", soft_wrap=True)

    def hint(self, command: str) -> None:
        """Print a command that shows more."""
        from rich.markup import escape

        self.console.print(f"    [dim]$ {escape(command)}[/]", soft_wrap=True)
