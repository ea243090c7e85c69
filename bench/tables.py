"""Tables of figures: printed, saved in a file, and compared with those of an earlier run."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

Rows = list[tuple[str, ...]]
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SHOWN: dict[str, str] = {}


def show(rows: Rows, headings: tuple[str, ...]) -> None:
    """Print a table, and remember its cells by row and column, for `save` and `compare`."""
    _print(rows, headings)
    for row in rows:
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            _SHOWN[f"{row[0].strip()}: {heading}"] = cell


def save(file: Path) -> None:
    """Write all figures that were shown."""
    file.write_text(json.dumps(_SHOWN, indent=1) + "\n")


def compare(file: Path) -> None:
    """Print the differences from the figures in a file."""
    earlier: Mapping[str, str] = json.loads(file.read_text())
    rows = [*_changes(earlier)]
    if rows:
        _print(rows, ("figure", "before", "now", "now / before"))
    else:
        print(f"no figure differs from {file}")


def _changes(earlier: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for name, cell in _SHOWN.items():
        before = earlier.get(name)
        if before is None or before == cell:
            continue
        old, new = _number(before), _number(cell)
        ratio = f"{new / old:.2f}" if old and new is not None else "-"
        yield name, before, cell, ratio


def _number(cell: str) -> float | None:
    found = _NUMBER.search(cell)
    return float(found[0].replace(",", "")) if found else None


def _print(rows: Rows, headings: tuple[str, ...]) -> None:
    widths = [max(len(row[n]) for row in [headings, *rows]) for n in range(len(headings))]
    for row in [headings, tuple("-" * width for width in widths), *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
