"""Which branches of Pergola's code the questions about a subject reach."""

import importlib
import json
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import coverage


class Branches(NamedTuple):
    """Branches of some packages."""

    reached: int
    all: int


class Reached:
    """Counts the branches of some packages that run within the block."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._coverage = coverage.Coverage(
            data_file=None, branch=True, include=[*map(_files, packages)], config_file=False
        )

    def __enter__(self) -> Self:
        self._coverage.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._coverage.stop()

    def branches(self) -> Branches:
        """Return the count; to be called after the block."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.json"
            self._coverage.json_report(outfile=str(path))
            totals = json.loads(path.read_text())["totals"]
        return Branches(totals["covered_branches"], totals["num_branches"])


def _files(package: str) -> str:
    file = Path(str(importlib.import_module(package).__file__))
    return f"{file.parent}/*" if file.stem == "__init__" else str(file)
