"""Progress of long steps: one changing line on a terminal, occasional lines in a log."""

from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.markup import escape

if TYPE_CHECKING:
    from rich.console import Console

_EVERY_SECONDS: Final = 30.0
_DONE: Final = ": done in "


class Interrupted(Exception):
    """The demonstration ended before this step: a build in a thread cannot be cancelled."""


class Lines:
    """A receiver of progress lines `STEP: STATE`, which may come from any thread.

    Without a terminal, a line is printed when its step begins or ends, and every half minute.
    """

    def __init__(self, console: "Console", indent: int) -> None:
        self._console = console
        self._indent = " " * indent
        self._status = console.status("", spinner="dots") if console.is_terminal else None
        self._step = ""
        self._printed = 0.0
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        if self._status is not None:
            self._status.stop()

    def show(self, line: str) -> None:
        """Show a line.

        Raises:
            Interrupted: The block has ended.
        """
        if self._is_over:
            raise Interrupted
        if self._status is not None:
            self._status.update(f"[dim]{self._cut(line)}[/]")
            self._status.start()
            if _DONE in line:
                self._print(line)
        elif self._is_due(line):
            self._print(line)

    def _is_due(self, line: str) -> bool:
        step, _, _ = line.partition(": ")
        now = monotonic()  # a thread has no event loop
        is_news = step != self._step or _DONE in line or now - self._printed >= _EVERY_SECONDS
        if is_news:
            self._step, self._printed = step, now
        return is_news

    def _print(self, line: str) -> None:
        self._console.print(f"[dim]{self._cut(line)}[/]")

    def _cut(self, line: str) -> str:
        """Return the line shortened to fit, with room for the spinner."""
        room = self._console.width - len(self._indent) - 2
        text = line if len(line) <= room else f"{line[: room - 1]}…"
        return self._indent + escape(text)
