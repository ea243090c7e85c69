"""Tables of figures: printed, saved as a run, and compared with those of an earlier run."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pergola.sandbox.module import SANDBOX
from pergola.sandbox.on_demand import GARDENER

Rows = list[tuple[str, ...]]
NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SHOWN: "list[Table]" = []


@dataclass(frozen=True)
class Table:
    """A table that was printed."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def cells(self) -> Iterator[tuple[str, str]]:
        """Yield each figure with its row and column as name."""
        for row in self.rows:
            for heading, cell in zip(self.headings[1:], row[1:], strict=True):
                yield f"{row[0].strip()}: {heading}", cell


def show(rows: Rows, headings: tuple[str, ...]) -> None:
    """Print a table, and remember it for `save` and `compare`."""
    _print(rows, headings)
    _SHOWN.append(Table(headings, rows))


def repeat(times: int, measure: Callable[[], None]) -> None:
    """Measure several times, and show the medians of all figures with the lowest and highest."""
    runs = []
    for number in range(times):
        begin = len(_SHOWN)
        print(f"\nrun {number + 1} of {times}\n")
        measure()
        runs.append(_SHOWN[begin:])
        del _SHOWN[begin:]
    print("\nmedians\n")
    for tables in zip(*runs, strict=True):
        show(*medians(tables))


def medians(tables: Sequence[Table]) -> tuple[Rows, tuple[str, ...]]:
    """Return the rows and headings of a table with the median of each cell of equal tables."""
    rows = [
        (cells[0][0], *map(_median, zip(*(row[1:] for row in cells), strict=True)))
        for cells in zip(*(table.rows for table in tables), strict=True)
    ]
    return rows, tuple(tables[0].headings)


def _median(cells: Sequence[str]) -> str:
    """Return the cell with the median number, and the lowest and highest number if they differ."""
    if len(set(cells)) == 1 or any(number(cell) is None for cell in cells):
        return cells[0]
    ordered = sorted(cells, key=lambda cell: number(cell) or 0)
    low, high = (NUMBER.findall(cell)[0] for cell in (ordered[0], ordered[-1]))
    return f"{ordered[(len(cells) - 1) // 2]} ({low} to {high})"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a benchmark.

    Attributes:
        date: As in "2026-01-31".
        commit: Abbreviated; "with changes" if the sources had some.
        machine: In words.
        times: How often it was measured; the tables have medians if it was more than once.
    """

    date: str
    commit: str
    machine: str
    python: str
    kubernetes: str
    gardener: str
    times: int
    tables: Sequence[Table]


def save(file: Path, times: int) -> None:
    """Write all tables that were shown, with a description of the run."""
    commit = _output("git", "rev-parse", "--short=8", "HEAD")
    changed = _output("git", "status", "--porcelain", "--", "../src", "*.py")
    run = Run(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=f"{commit} with changes" if changed else commit,
        machine=machine(),
        python=platform.python_version(),
        kubernetes=SANDBOX.version,
        gardener=GARDENER.version,
        times=times,
        tables=_SHOWN,
    )
    file.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n")


def machine() -> str:
    """Return the machine in words, such as "2 cores, 16 GiB of memory"."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"


def read(file: Path) -> Run:
    """Return a saved run."""
    found = json.loads(file.read_text())
    return Run(**{**found, "tables": [Table(**table) for table in found["tables"]]})


def compare(file: Path) -> None:
    """Print the differences from the figures in a file."""
    rows = [*_changes(dict(cell for table in read(file).tables for cell in table.cells()))]
    if rows:
        _print(rows, ("figure", "before", "now", "now / before"))
    else:
        print(f"no figure differs from {file}")


def _changes(earlier: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for name, cell in (found for table in _SHOWN for found in table.cells()):
        before = earlier.get(name)
        if before is None or before == cell:
            continue
        old, new = number(before), number(cell)
        ratio = f"{new / old:.2f}" if old and new is not None else "-"
        yield name, before, cell, ratio


def number(cell: str) -> float | None:
    """Return the first number of a cell, or None."""
    found = NUMBER.search(cell)
    return float(found[0].replace(",", "")) if found else None


def _output(*command: str) -> str:
    folder = Path(__file__).parent
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _print(rows: Rows, headings: tuple[str, ...]) -> None:
    widths = [max(len(row[n]) for row in [headings, *rows]) for n in range(len(headings))]
    for row in [headings, tuple("-" * width for width in widths), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
