"""Values of fields, for people."""

from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue

_LINES: Final = 20


def text_difference(one: "JsonValue", other: "JsonValue") -> Iterator[str] | None:
    """Return the lines that differ between two multi-line texts; None for other values."""
    if isinstance(one, str) and isinstance(other, str) and ("\n" in one or "\n" in other):
        return _changed(one, other)
    return None


def list_difference(one: "JsonValue", other: "JsonValue") -> Iterator[str] | None:
    """Return the items that differ between two lists of plain values; None for other values."""
    if not isinstance(one, list) or not isinstance(other, list) or _has_maps([*one, *other]):
        return None
    from pergola.operator.compare import shown

    lines = [f"- {shown(item)}" for item in one if item not in other]
    lines += [f"+ {shown(item)}" for item in other if item not in one]
    return iter(lines or ["the order changes"])


def _has_maps(items: "list[JsonValue]") -> bool:
    return any(isinstance(item, dict | list) for item in items)


def _changed(one: str, other: str) -> Iterator[str]:
    lines = list(unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0))[2:]
    yield from islice((line for line in lines if not line.startswith("@@")), _LINES)
    if len(lines) > _LINES:
        yield "…"
