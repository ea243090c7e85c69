"""Texts in messages."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 pod`, `2 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def abridged(texts: Sequence[str], most: int = 10, *, separator: str = ", ") -> str:
    """Join the first texts, and the number of the others: `a, b and 3 more`, `a; b; and 3 more`."""
    more = len(texts) - most
    shown = separator.join(texts[:most])
    if more <= 0:
        return shown
    return f"{shown}{'' if separator == ', ' else separator.rstrip()} and {more} more"
