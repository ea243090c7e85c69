"""The page of performance shows the saved runs of the benchmarks."""

import os
from pathlib import Path
from typing import Final

import pytest

from bench.tables import Table, medians
from tools.figures import RUNS, missed, names, table, with_figures

UPDATE: Final = "update it: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/docs"
PAGE: Final = Path(__file__).parents[3] / "docs" / "explanation" / "performance.md"


def test_the_page_shows_all_saved_runs() -> None:
    text = PAGE.read_text()
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(with_figures(text))
        return
    assert text == with_figures(text), UPDATE
    assert sorted(names(text)) == sorted(file.stem for file in RUNS.glob("*.json"))


@pytest.mark.parametrize(
    ("figure", "target", "verdict"),
    [
        ("1.24 (1.19 to 1.31)", "≤ 1.15", True),
        ("1.10 (1.09 to 1.31)", "≤ 1.15", False),
        ("8,948", "≤ 8,500", True),
        ("0.028 s", "≤ 0.5 s", False),
        ("9,400", "≥ 10,000", True),
        ("2.3 s", "≤ 12 s for 3,000", False),
        ("20 s", "≤ 12 s for 3,000", False),
        ("-", "≤ 1.15", False),
        ("5", "", False),
    ],
)
def test_a_missed_target_is_recognised(figure: str, target: str, verdict: bool) -> None:
    assert missed(figure, target) is verdict


def test_a_table_names_missed_targets() -> None:
    rows = [["  CPU", "6.2", "≤ 3.5"], ["memory", "70 MB", "≤ 75 MB"]]
    assert table(["figure", "measured", "target"], rows) == (
        "| figure | measured | target |\n"
        "| --- | --- | --- |\n"
        "| CPU | 6.2 (**missed**) | ≤ 3.5 |\n"
        "| memory | 70 MB | ≤ 75 MB |\n"
    )


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["1.9 s", "1.6 s", "1,200.5 s"], "1.9 s (1.6 to 1,200.5)"),
        (["3", "1"], "1 (1 to 3)"),
        (["4, 0", "4, 0"], "4, 0"),
        (["-", "2"], "-"),
    ],
)
def test_repeated_runs_show_the_median_with_the_lowest_and_highest(
    cells: list[str], shown: str
) -> None:
    tables = [Table(("figure", "measured"), [("CPU", cell)]) for cell in cells]
    assert medians(tables) == ([("CPU", shown)], ("figure", "measured"))
