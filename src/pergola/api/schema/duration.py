"""Durations in declared types: Go duration strings in JSON, timedeltas in Python."""

from datetime import timedelta
from typing import ClassVar, Self

from pergola.api.durations import format_duration, parse_duration
from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Scalar


class Duration(Scalar, timedelta):
    """A span of time; `1h30m` in JSON."""

    schema: ClassVar[JsonObject] = {"type": "string", "format": "duration"}

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a Go duration string; raise `DurationError` if it is not one."""
        span = parse_duration(text)
        return cls(days=span.days, seconds=span.seconds, microseconds=span.microseconds)

    def __str__(self) -> str:
        return format_duration(self)
