"""Tables of figures: printed, saved as a run, and compared with those of an earlier run."""

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pergola.sandbox.module import SANDBOX
from pergola.sandbox.on_demand import GARDENER

Rows = list[tuple[str, ...]]
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
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
    numbers = [_number(cell) for cell in cells]
    if len(set(cells)) == 1 or None in numbers:
        return cells[0]
    found = sorted(zip((number for number in numbers if number is not None), cells, strict=True))
    middle = statistics.median_low([number for number, _ in found])
    cell = next(cell for number, cell in found if number == middle)
    low, high = (_NUMBER.search(found[n][1]) for n in (0, -1))
    assert low is not None
    assert high is not None
    return f"{cell} ({low[0]} to {high[0]})"


def save(file: Path, times: int) -> None:
    """Write all tables that were shown, with what describes the run."""
    commit = _output("git", "rev-parse", "--short=8", "HEAD")
    changed = _output("git", "status", "--porcelain", "--", "../src", "*.py")
    run = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": f"{commit} with changes" if changed else commit,
        "machine": machine(),
        "python": platform.python_version(),
        "kubernetes": SANDBOX.version,
        "gardener": GARDENER.version,
        "times": times,
        "tables": [asdict(table) for table in _SHOWN],
    }
    file.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n")


def machine() -> str:
    """Return the machine in words, such as "2 cores, 16 GiB of memory"."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory"


def read(file: Path) -> list[Table]:
    """Return the tables of a saved run."""
    return [Table(**table) for table in json.loads(file.read_text())["tables"]]


def compare(file: Path) -> None:
    """Print the differences from the figures in a file."""
    rows = [*_changes(dict(cell for table in read(file) for cell in table.cells()))]
    if rows:
        _print(rows, ("figure", "before", "now", "now / before"))
    else:
        print(f"no figure differs from {file}")


def _changes(earlier: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for name, cell in (found for table in _SHOWN for found in table.cells()):
        before = earlier.get(name)
        if before is None or before == cell:
            continue
        old, new = _number(before), _number(cell)
        ratio = f"{new / old:.2f}" if old and new is not None else "-"
        yield name, before, cell, ratio


def _number(cell: str) -> float | None:
    found = _NUMBER.search(cell)
    return float(found[0].replace(",", "")) if found else None


def _output(*command: str) -> str:
    folder = Path(__file__).parent
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _print(rows: Rows, headings: tuple[str, ...]) -> None:
    widths = [max(len(row[n]) for row in [headings, *rows]) for n in range(len(headings))]
    for row in [headings, tuple("-" * width for width in widths), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
