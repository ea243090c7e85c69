"""Collected and handwritten questions; each is always asked, and its answer recorded.

A file has compressed JSON lines, a question each. Those about Gardens and Extensions are
Gardener's own test table, public manifests, and every field with odd values; those about Shoots on
AWS are a valid one with one changed field; those about pods were found by a search.
"""

import lzma
from collections.abc import Iterator
from pathlib import Path

import orjson

from pergola.api.objects import JsonObject


def collected(name: str) -> Iterator[JsonObject]:
    """Yield the questions of a file."""
    with lzma.open(Path(__file__).parent / f"{name}.jsonl.xz") as lines:
        yield from map(orjson.loads, lines)
