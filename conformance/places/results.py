"""The outcomes of the last saved run, which the documentation shows."""

from datetime import date
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.results import read, write

RESULTS: Final = Path(__file__).parent / "results.json"


class Result(Struct, frozen=True):
    """The outcome of a place.

    Attributes:
        versions: of the original, by Go module.
        held: the number of checks that held, by sort.
        failed: the number of the others.
        requests: those of the resource manager.
        refused: how many of them were forbidden.
    """

    versions: dict[str, str]
    date: date
    held: dict[str, int]
    failed: int
    requests: int
    refused: int


def saved(path: Path = RESULTS) -> dict[str, Result]:
    """Return the results by place."""
    return read(path, Result)


def save(results: dict[str, Result], path: Path = RESULTS) -> None:
    """Replace the results of some places."""
    write(path, saved(path) | results)
