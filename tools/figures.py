"""The tables of docs/explanation/performance.md, from the runs that `python -m bench` has saved.

A run is a file in bench/runs. The page says where its tables go:

    <!-- figures: NAME -->
    ...
    <!-- end of figures -->
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.tables import NUMBER, Run, number, read

RUNS: Final = Path(__file__).parents[1] / "bench" / "runs"
_BLOCK: Final = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
_TARGET: Final = re.compile(rf"([≤≥]) {NUMBER.pattern}(?!.* for )")


def with_figures(text: str) -> str:
    """Return a page with the tables of the saved runs that it names."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}\n{tables(RUNS / f'{found[2]}.json')}\n{found[3]}"

    return _BLOCK.sub(block, text)


def names(text: str) -> list[str]:
    """Return the names of the runs that a page shows."""
    return [found[2] for found in _BLOCK.finditer(text)]


def tables(file: Path) -> str:
    """Return the tables of a run in Markdown, and how it was measured."""
    run = read(file)
    shown = [table(each.headings, each.rows) for each in run.tables]
    return "\n".join([*shown, f"{_origin(run)}\n"])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, which says where a target is missed."""
    lines = [headings, ["---"] * len(headings), *(_judged(headings, row) for row in rows)]
    return "".join(f"| {' | '.join(cell.strip() for cell in line)} |\n" for line in lines)


def missed(figure: str, target: str) -> bool:
    """Return whether a figure misses a target such as "≤ 3.5 s"; not if it is for another size."""
    limit, value, bound = _TARGET.match(target), number(figure), number(target)
    if limit is None or value is None or bound is None:
        return False
    return value > bound if limit[1] == "≤" else value < bound


def _judged(headings: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    target = row[headings.index("target")] if "target" in headings else ""
    for heading, cell in zip(headings, row, strict=True):
        is_judged = heading == "measured" and missed(cell, target)
        yield f"{cell} (**missed**)" if is_judged else cell


def _origin(run: Run) -> str:
    several = f"Medians of {run.times} runs, with the lowest and highest,"
    return (
        f"{'One run' if run.times == 1 else several} on {run.date} at commit {run.commit}: "
        f"{run.machine}, Python {run.python}, Kubernetes {run.kubernetes}, "
        f"Gardener {run.gardener}."
    )
