"""How long work tells that it goes on."""

from typing import Protocol


class Progress(Protocol):
    """Is told, in short lines, what is being done now."""

    def __call__(self, line: str, /) -> None:
        """Shows one line."""
        ...


def silent(line: str) -> None:
    """The progress of those who do not watch."""
