"""A console of rich that sends only its own control characters to the terminal."""

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pergola.api.visible_text import visible


class SafeConsole(Console):
    """A console that shows control characters of texts, and prints strings as they are.

    Args:
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
        super().__init__(
            file=file,
            width=width,
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
