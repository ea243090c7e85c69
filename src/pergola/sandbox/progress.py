"""Progress reports of long operations."""

from typing import Protocol


class Progress(Protocol):
    """A receiver of short lines that describe the current step."""

    def __call__(self, line: str, /) -> None:
        """Show one line."""
        ...


def silent(line: str) -> None:
    """Discard the line."""
