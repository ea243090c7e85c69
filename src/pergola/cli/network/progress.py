"""How `pergola network` shows what it waits for: a bar for people, lines for everything else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.extension_api.caller import Progress


@contextmanager
def shown(what: str) -> "Iterator[Callable[[Progress], None]]":
    """What to tell progress of `what` to, while the block lasts."""
    if sys.stdout.isatty():
        with _bar(what) as tell:
            yield tell
    else:
        yield lambda progress: print(f"{what}: {text_of(progress)}", flush=True)


def text_of(progress: "Progress") -> str:
    """One line: percent, what is done or wrong, and why."""
    why = f" ({progress.hint})" if progress.hint else ""
    return f"{progress.percent}% {progress.text}{why}"


@contextmanager
def _bar(what: str) -> "Iterator[Callable[[Progress], None]]":
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*columns, TextColumn("{task.description}"), transient=True) as bar:
        task = bar.add_task(escape(what), total=100)

        def tell(progress: "Progress") -> None:
            why = f" ({progress.hint})" if progress.hint else ""
            text = escape(f"{progress.text}{why}")
            bar.update(task, completed=progress.percent, description=text)

        yield tell
