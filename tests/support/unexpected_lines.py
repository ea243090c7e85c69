"""Unexpected warnings and errors in the logs of processes."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import orjson

_EXPECTED: Final[frozenset[str]] = frozenset()
"""Messages of warnings that belong to the work of a landscape in which nothing fails."""
_LEVELS: Final = frozenset({"warn", "error"})


def warnings(lines: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return each unexpected warning and error with its number and an example.

    Args:
        lines: the name of a log and a line of it. A line that is not a JSON object counts as an
            error.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for name, line in lines:
        if message := _problem(line):
            counts[message] += 1
            examples.setdefault(message, f"{name}: {line.decode(errors='replace')}")
    return [f"{count} times {message}: {examples[message]}" for message, count in counts.items()]


def _problem(line: bytes) -> str | None:
    """Return the logger and message of an unexpected line, or None for any other."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict):
        return "no JSON"
    message = f"{event.get('logger')}: {event.get('msg')}"
    return message if event.get("level") in _LEVELS and message not in _EXPECTED else None
