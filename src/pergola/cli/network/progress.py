"""Progress of `pergola network`: a bar for people, lines for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pergola.cli.text import plain_console, say

if TYPE_CHECKING:
    from pergola.extension_api.caller import Progress


@contextmanager
def shown(what: str) -> "Iterator[Callable[[Progress], None]]":
    """Yield a function that shows the progress of `what`, for the duration of the block."""
    if sys.stdout.isatty():
        with _bar(what) as report:
            yield report
    else:
        yield _lines(what)


def _lines(what: str) -> "Callable[[Progress], None]":
    """Return a function that prints each line once: an extension that retries repeats itself."""
    printed: set[str] = set()

    def report(progress: "Progress") -> None:
        line = f"{what}: {text_of(progress)}"
        if line not in printed:
            printed.add(line)
            say(line, flush=True)

    return report


def text_of(progress: "Progress") -> str:
    """Return one line: the percentage, what is done or wrong, and why."""
    why = f" ({progress.hint})" if progress.hint else ""
    return f"{progress.percent}% {progress.text}{why}"


@contextmanager
def _bar(what: str) -> "Iterator[Callable[[Progress], None]]":
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(
        *columns, TextColumn("{task.description}"), console=plain_console(), transient=True
    ) as bar:
        task = bar.add_task(escape(what), total=100)

        def report(progress: "Progress") -> None:
            why = f" ({progress.hint})" if progress.hint else ""
            text = escape(f"{progress.text}{why}")
            bar.update(task, completed=progress.percent, description=text)

        yield report
