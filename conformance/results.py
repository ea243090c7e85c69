"""Figures of the last saved search, which the documentation shows."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

S = TypeVar("S", bound=Struct)
RESULTS: Final = Path(__file__).parent / "results.json"


class Result(Struct, frozen=True):
    """The result of a search about a subject.

    Attributes:
        versions: of the original, by Go module.
        undecided: the number of undecided differences.
        reached: branches of Pergola's code that ran.
        branches: all of them.
    """

    versions: dict[str, str]
    date: date
    seed: int
    cases: int
    undecided: int
    reached: int
    branches: int


def saved(path: Path = RESULTS) -> dict[str, Result]:
    """Return the results by subject."""
    return read(path, Result)


def save(subject: str, result: Result, path: Path = RESULTS) -> None:
    """Replace the result of a subject."""
    write(path, saved(path) | {subject: result})


def read(path: Path, of: type[S]) -> dict[str, S]:
    """Return the results in a file by name; without the file, an empty mapping."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, of]) if path.exists() else {}  # type: ignore[valid-type] # a type at run time


def write(path: Path, results: Mapping[str, Struct]) -> None:
    """Replace the results in a file."""
    ordered = {name: results[name] for name in sorted(results)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ordered)) + b"\n")
