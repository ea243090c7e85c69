"""Lines in the logs of processes that nobody expects while nothing fails."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

_EXPECTED: Final[frozenset[str]] = frozenset()
"""Messages of warnings that belong to the work of a landscape in which nothing fails."""
_LEVELS: Final = frozenset({"warn", "error"})


def warnings(logs: Mapping[Path, int]) -> list[str]:
    """Return each unexpected warning and error with its number and an example.

    Args:
        logs: files with JSON lines, or with lines that are no JSON and count as errors, and where
            to begin in each, in bytes.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for file, start in logs.items():
        for message, line in _problems(file.read_bytes()[start:]):
            counts[message] += 1
            examples.setdefault(message, f"{file.name}: {line}")
    return [f"{count} times {message}: {examples[message]}" for message, count in counts.items()]


def _problems(text: bytes) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            yield "no JSON", line.decode(errors="replace")
            continue
        message = f"{event.get('logger')}: {event.get('msg')}"
        if event.get("level") in _LEVELS and message not in _EXPECTED:
            yield message, line.decode(errors="replace")
