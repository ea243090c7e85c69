"""Differences between two answers, and the list of those that are decided."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from pergola.api.objects import JsonValue
from pergola.operator.compare import Expected, expected

DECIDED: Final = Path(__file__).parent / "differences.toml"
ABSENT: Final = "absent"
"""Stands for a value that an answer does not have."""
GARDEN_OBJECTS: Final = "garden-objects"
"""The subject whose decided differences are part of the product."""
_EXPLAINED: Final = 555
MOST: Final = 100
"""The highest permitted number of decided differences; 15 are for control planes on AWS."""


class Difference(Struct, frozen=True):
    """Two values at one path of two answers.

    Attributes:
        path: such as `object.spec.containers[0].env[1].value`.
        theirs: the original's, as JSON, or `ABSENT`.
        ours: Pergola's.
    """

    path: str
    theirs: str
    ours: str

    def __str__(self) -> str:
        return f"{self.path}: the original has {self.theirs}, Pergola has {self.ours}"


class Decided(Struct, frozen=True, forbid_unknown_fields=True):
    """A decided difference.

    Attributes:
        path: `*` stands for any text between dots, brackets and spaces, `**` for any text.
        theirs: a regular expression for the original's value; empty for any.
        ours: the same for Pergola's.
        record: the number of the decision record.
    """

    subject: str
    path: str
    reason: str
    record: int
    theirs: str = ""
    ours: str = ""

    def covers(self, subject: str, difference: Difference) -> bool:
        """Return whether this line accepts a difference of a subject."""
        return (
            subject == self.subject
            and re.fullmatch(_path_pattern(self.path), difference.path) is not None
            and re.search(self.theirs, difference.theirs) is not None
            and re.search(self.ours, difference.ours) is not None
        )


class Decisions:
    """All decided differences; counts how often each was met."""

    def __init__(self, decided: Sequence[Decided]) -> None:
        self.decided = decided
        self.met: Counter[Decided] = Counter()

    @classmethod
    def read(cls, path: Path = DECIDED) -> "Decisions":
        """Read the list, and the differences that `pergola garden compare` explains.

        Raises:
            msgspec.ValidationError: A line lacks a field, or has one too many.
        """
        rows = tomllib.loads(path.read_text()).get("difference", [])
        explained = (line for row in expected() for line in _explained(row))
        return cls([*(msgspec.convert(row, Decided) for row in rows), *explained])

    def undecided(self, subject: str, differences: Iterable[Difference]) -> list[Difference]:
        """Return the differences that no line accepts."""
        return [each for each in differences if not self._is_decided(subject, each)]

    def never_met(self, subjects: Iterable[str]) -> list[Decided]:
        """Return the lines of some subjects that accepted nothing."""
        names = set(subjects)
        return [each for each in self.decided if each.subject in names and not self.met[each]]

    def _is_decided(self, subject: str, difference: Difference) -> bool:
        covering = [each for each in self._of.get(subject, ()) if each.covers(subject, difference)]
        self.met.update(covering)
        return bool(covering)

    @property
    def listed(self) -> list[Decided]:
        """The lines of the file."""
        return [each for each in self.decided if each.subject != GARDEN_OBJECTS]

    @property
    def explained(self) -> list[Decided]:
        """The differences that `pergola garden compare` explains."""
        return [each for each in self.decided if each.subject == GARDEN_OBJECTS]

    @cached_property
    def _of(self) -> dict[str, list[Decided]]:
        found: dict[str, list[Decided]] = {}
        for each in self.decided:
            found.setdefault(each.subject, []).append(each)
        return found


def _explained(row: Expected) -> Iterator[Decided]:
    for objects in row.objects:
        yield Decided(
            subject=GARDEN_OBJECTS,
            path=f"{objects} {row.field}".strip().replace("*", "**"),
            reason=row.why,
            record=_EXPLAINED,
            theirs=_whole(row.original),
            ours=_whole(row.ours),
        )


def _whole(pattern: str) -> str:
    return f"(?s)^{'.*'.join(map(re.escape, pattern.split('*')))}$"


def differences(theirs: JsonValue, ours: JsonValue, path: str = "") -> Iterator[Difference]:
    """Yield the differences between two values, each at the deepest path that shows it."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            below = f"{path}.{key}" if path else key
            if key not in theirs or key not in ours:
                yield Difference(below, _text(theirs, key), _text(ours, key))
            else:
                yield from differences(theirs[key], ours[key], below)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif theirs != ours or isinstance(theirs, bool) != isinstance(ours, bool):
        yield Difference(path, _json(theirs), _json(ours))


def without_indexes(path: str) -> str:
    """Return a path with `[*]` for each index, as in a line of the list."""
    return re.sub(r"\[\d+\]", "[*]", path)


def refusals(
    theirs: Sequence[tuple[str, str]], ours: Sequence[tuple[str, str]]
) -> Iterator[Difference]:
    """Yield the refusals of one side if the other accepts; two refusals are equal.

    Args:
        theirs: the original's errors, each with its field's path (may be empty) and text.
        ours: Pergola's.
    """
    if not ours:
        yield from (Difference(path or "object", text, ABSENT) for path, text in theirs)
    elif not theirs:
        yield from (Difference(path or "object", ABSENT, text) for path, text in ours)


def _text(values: dict[str, JsonValue], key: str) -> str:
    return _json(values[key]) if key in values else ABSENT


def _json(value: JsonValue) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _path_pattern(path: str) -> str:
    parts = re.split(r"(\*\*|\*)", path)
    wild = {"*": r"[^.\[\] ]*", "**": ".*"}
    return "".join(wild.get(part, re.escape(part)) for part in parts)
