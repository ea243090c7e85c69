"""Decided differences from the original operator, each with its reason.

The rows are data: comparisons separate them from new differences, and a page of the documentation
is generated from them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import orjson

from pergola.api.objects import JsonValue
from pergola.kube.yaml import parse
from pergola.operator.compare.comparison import Comparison, Differing
from pergola.operator.compare.placed import Placed

ABSENT: Final = "(absent)"
PRESENT: Final = "(present)"

_FILE: Final = "expected.yaml"


@dataclass(frozen=True, slots=True)
class Expected:
    """A decided difference; `*` in a pattern matches any text.

    Attributes:
        objects: Patterns for kind, namespace and name.
        field: A pattern for the path of the field; empty for objects that one side lacks.
        original: A pattern for the original's value, as JSON.
        ours: A pattern for our value, as JSON.
        why: The reason, in one or two sentences.
    """

    objects: tuple[str, ...]
    original: str
    ours: str
    why: str
    field: str = ""

    def covers(self, placed: Placed, field: str, original: str, ours: str) -> bool:
        """Return whether this is the difference of an object."""
        pairs = ((self.field, field), (self.original, original), (self.ours, ours))
        is_object = any(_matches(pattern, str(placed.identity)) for pattern in self.objects)
        return is_object and all(_matches(pattern, text) for pattern, text in pairs)


@cache
def expected() -> tuple[Expected, ...]:
    """Return all decided differences."""
    rows = parse(files(__package__).joinpath(_FILE).read_text())
    return msgspec.convert(rows, tuple[Expected, ...])


def shown(value: JsonValue) -> str:
    """Return a value as patterns match it and readers see it."""
    return ABSENT if value is None else orjson.dumps(value).decode()


def reason(
    placed: Placed, field: str, original: JsonValue, ours: JsonValue, rows: Iterable[Expected]
) -> str | None:
    """Return why a field differs, or None if that is not decided."""
    texts = shown(original), shown(ours)
    return next((row.why for row in rows if row.covers(placed, field, *texts)), None)


def reason_alone(placed: Placed, *, is_there: bool, rows: Iterable[Expected]) -> str | None:
    """Return why only one side has an object, or None if that is not decided."""
    texts = (PRESENT, ABSENT) if is_there else (ABSENT, PRESENT)
    return next((row.why for row in rows if row.covers(placed, "", *texts)), None)


def unexpected(found: Comparison, rows: Sequence[Expected]) -> Comparison:
    """Return a comparison without the decided differences."""
    differing = (_undecided(each, rows) for each in found.differing)
    return replace(
        found,
        only_there=_alone(found.only_there, rows, is_there=True),
        only_here=_alone(found.only_here, rows, is_there=False),
        differing=[each for each in differing if each.fields],
    )


def _alone(objects: list[Placed], rows: Sequence[Expected], *, is_there: bool) -> list[Placed]:
    return [each for each in objects if reason_alone(each, is_there=is_there, rows=rows) is None]


def _undecided(each: Differing, rows: Sequence[Expected]) -> Differing:
    return replace(
        each,
        fields=tuple(
            field
            for field in each.fields
            if reason(each.here, field.path, field.one, field.other, rows) is None
        ),
    )


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
